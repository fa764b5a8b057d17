"""Plans: scenarios and sweeps become runs that are checked before any of them starts."""
