"""The rooms of `bench/run` and `bench/plot`. Nothing here needs more than Python's own library."""
