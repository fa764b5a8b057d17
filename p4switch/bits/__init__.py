"""Arithmetic of bit strings (P4-16 specification, sections 8.5 to 8.11), written once for values of any kind.

    operators.binary(INTEGERS, "|+|", Bits(8), Bits(8), 200, 100)  # 255

`operators` composes P4's operators from the operations of a `Domain`. `integers` and `formulas` are the two domains.
"""
