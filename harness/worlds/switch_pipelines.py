"""Compiled programs of a run's switches, by pipe."""

from __future__ import annotations

from collections.abc import Mapping

from control_plane.controller import SwitchSetup
from control_plane.pipelines import Pipeline, pipeline
from harness.plan.run import Run


def pipelines_of(run: Run, compiler: str, traced: bool = False) -> dict[str, Pipeline]:
    """Return the pipeline of each pipe.

    Raises UserError for a program that cannot be compiled.
    """
    return {name: pipeline(run.build_of(pipe), traced, compiler) for name, pipe in run.pipes.items()}


def setups_of(run: Run, pipelines: Mapping[str, Pipeline]) -> dict[str, SwitchSetup]:
    """Return what the controller needs to set up each pipe, by the pipe's name."""
    return {
        name: SwitchSetup(
            pipelines[name].program,
            pipe.program.parameters,
            tuple(run.loops[pipe.switch]),
            pipe.number,
            pipe.program.pipes[pipe.switch],
        )
        for name, pipe in run.pipes.items()
    }
