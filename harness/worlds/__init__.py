"""The worlds that a run can take place in. Each takes a `Run` and gives a `Recording`."""
