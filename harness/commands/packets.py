"""`p4cc packets`: what is made of the declarations of headers and packets."""

from __future__ import annotations

from pathlib import Path

import click

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option(
    "--cc", multiple=True, metavar="NAME", help="A protocol, or its file, whose packets to take; repeatable. None: all."
)
@click.option("--wireshark", type=_FILE, metavar="FILE", help="Write a Wireshark dissector in Lua.")
@click.option(
    "--p4", "p4_folder", type=click.Path(path_type=Path), metavar="FOLDER", help="Write P4 includes under this folder."
)
@click.option("--docs", "page", type=_FILE, metavar="FILE", help="Bring the tables of a Markdown page up to date.")
def command(cc: tuple[str, ...], wireshark: Path | None, p4_folder: Path | None, page: Path | None) -> None:
    """List the packets of protocols, or write what is made of their declarations.

    tshark -X lua_script:FILE reads captures with the dissector. P4 programs include include/packets/NAME.p4.
    """
    import wireformats
    from host_agents import registry
    from host_agents.errors import HostError
    from p4switch import extensions
    from p4switch.errors import UserError
    from wireformats import docs, p4
    from wireformats.wireshark import dissector

    try:
        opcodes = wireformats.opcodes([extensions.named(registry.KINDS["cc"], name, Path.cwd()) for name in cc])
    except HostError as error:
        raise UserError(str(error)) from None
    try:
        if wireshark is not None:
            wireshark.write_text(dissector(opcodes), encoding="utf-8")
        if p4_folder is not None:
            p4.write(p4_folder, opcodes)
        if page is not None:
            page.write_text(docs.updated(page.read_text(encoding="utf-8"), opcodes), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {error.filename!r}: {error.strerror}") from None
    if wireshark is None and p4_folder is None and page is None:
        for line in docs.listing(opcodes):
            click.echo(line)
