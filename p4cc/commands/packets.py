"""`p4cc packets`: files that are generated from the declarations of headers and packets."""

from __future__ import annotations

from pathlib import Path

import click

from host_agents.errors import HostError
from p4switch import extensions
from p4switch.errors import UserError

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option(
    "--cc",
    multiple=True,
    metavar="NAME",
    help="A protocol, or its file, whose packets to take; repeatable. Default: all.",
)
@click.option("--wireshark", type=_FILE, metavar="FILE", help="Write a Wireshark dissector in Lua.")
@click.option(
    "--p4", "p4_folder", type=click.Path(path_type=Path), metavar="FOLDER", help="Write P4 includes under this folder."
)
@click.option(
    "--uet",
    "translated",
    nargs=2,
    type=_FILE,
    metavar="CAPTURE FILE",
    help="Write a capture (pcap-ng) with Ultra Ethernet's headers instead of RoCEv2's; other frames are left out.",
)
@click.option("--uet-wireshark", type=_FILE, metavar="FILE", help="Write a dissector of Ultra Ethernet's headers.")
@click.option("--docs", "page", type=_FILE, metavar="FILE", help="Write the packets and their fields in Markdown.")
def command(
    cc: tuple[str, ...],
    wireshark: Path | None,
    p4_folder: Path | None,
    translated: tuple[Path, Path] | None,
    uet_wireshark: Path | None,
    page: Path | None,
) -> None:
    """List the packets of protocols, or write the files that are generated from their declarations.

    tshark -X lua_script:FILE reads captures with the dissector. P4 programs include
    include/packets/NAME.p4.
    """
    import wireformats
    from host_agents import registry
    from p4cc.commands._uet_capture import translate
    from wireformats import docs, p4
    from wireformats.wireshark import dissector, uet_dissector

    try:
        opcodes = wireformats.opcodes([extensions.named(registry.KINDS["cc"], name, Path.cwd()) for name in cc])
    except HostError as error:
        raise UserError(str(error)) from None
    try:
        if wireshark is not None:
            wireshark.write_text(dissector(opcodes), encoding="utf-8")
        if uet_wireshark is not None:
            uet_wireshark.write_text(uet_dissector(), encoding="utf-8")
        if translated is not None:
            kept, left_out = translate(*translated)
            click.echo(f"{kept} frames, {left_out} left out: {translated[1]}")
        if p4_folder is not None:
            p4.write(p4_folder, opcodes)
        if page is not None:
            page.write_text(docs.page(opcodes), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {error.filename!r}: {error.strerror}") from None
    if all(wanted is None for wanted in (wireshark, p4_folder, translated, uet_wireshark, page)):
        for line in docs.listing(opcodes):
            click.echo(line)
