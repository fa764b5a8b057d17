"""Tables of BfRuntime: each kind has a file, which registers its classes in `TABLE_KINDS` by `table_type`."""
