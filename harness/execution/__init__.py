"""How what a command line asks for is planned, run, kept and reported."""
