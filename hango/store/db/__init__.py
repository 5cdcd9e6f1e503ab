"""Made by sqlc from hango/store/queries; only store modules call it."""
