"""Reference: the meaning of every key, column and variable, read from the code that uses it."""
