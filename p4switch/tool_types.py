"""Types of the arguments of an extern's methods.

Externs import this module only for type checkers, so that compiling a program never imports z3.
"""

from p4switch.compiler import ast
from p4switch.compiler.midend.elaborate import ExternObject
from p4switch.compiler.midend.lowering import Lowering
from p4switch.compiler.midend.values import Value
from p4switch.compiler.p4info.build import Builder
from p4switch.engine.cexpr import C
from p4switch.engine.statements import Statements
from p4switch.fit.flow import Pipeline
from p4switch.testgen.machine import Machine
from p4switch.testgen.proof import Prover, State
from p4switch.testgen.walk import Walk

__all__ = [
    "Builder", "C", "ExternObject", "Lowering", "Machine", "Pipeline", "Prover", "State", "Statements", "Value",
    "Walk", "ast",
]  # fmt: skip
