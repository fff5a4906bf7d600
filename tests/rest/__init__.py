"""The tests that `make test` leaves out, in parts that take turns: `make test-rest`."""
