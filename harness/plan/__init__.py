"""Plans: from scenarios and sweeps to runs that are checked before any of them starts."""
