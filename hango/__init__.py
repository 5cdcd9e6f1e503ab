"""hango: an agent harness whose heart is a context inspector."""

__version__ = "0.1.0"
