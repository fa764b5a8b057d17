"""Reference: the meaning of every key, column and variable, read off the code that uses it."""
