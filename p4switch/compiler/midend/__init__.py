"""From the typed tree to flat code: everything inlined, specialised and flattened (see `ir`)."""
