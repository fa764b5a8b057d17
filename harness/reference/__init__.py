"""What every key, column and variable means, read off the code that takes or makes it."""
