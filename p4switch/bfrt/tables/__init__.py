"""Tables of BfRuntime, a file for each kind, which registers its classes in `TABLE_KINDS` by their `table_type`."""
