"""Mid end: from the typed tree to flat code, inlined, specialised and flattened (see `ir`)."""
