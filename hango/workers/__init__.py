"""Work that no request waits for. Redis only rings: what is to be done, and by whom, stands in PostgreSQL."""
