# %% [markdown]
# # Quell against DCQCN
# Each `# %%` begins a cell for editors that know notebooks; `python notebook.py` runs it as a script.

# %%
from pathlib import Path

import p4cc
from p4cc.programs import Action, Exact, Lpm, TableEntry

HERE = Path(__file__).parent

# %% What the switch does to one probe: it leaves with the port's delay.
from scapy.all import IP, UDP, Ether, Raw  # noqa: E402

switch = p4cc.Switch(
    p4cc.compile(HERE / "delays.p4", cc=[HERE / "quell.py"]),
    [
        TableEntry("ipv4_lpm", {"dst_addr": Lpm(0x0A000003, 32)}, Action("forward", {"port": 2})),
        TableEntry("port_speed", {"port": Exact(2)}, Action("measure", {"ps": 6400})),
    ],
)
switch.set_register("smoothed_delay_of", 2, 1234)
bth = bytes([0xFE, 0, 0xFF, 0xFF, 0, 0, 0, 7, 0, 0, 0, 0])
probe = Ether() / IP(src="10.0.0.2", dst="10.0.0.3") / UDP(sport=0xC000, dport=4791, chksum=0) / Raw(bth + bytes(8))
(output,) = switch.send(probe, port=1)
delay = int.from_bytes(output.frame[55:58], "big")
print(f"the probe leaves port {output.port} with a delay of {delay} units")
assert (output.port, delay) == (2, 1234)

# %% Both protocols, in the virtual world.
results = p4cc.run(HERE / "quell.toml", seeds=[1, 2])
print(results.table()[["cc", "seed", "flows_delivered", "fct_mean_ns", "fct_p99_ns"]].to_string())

# %% What the register of the P4 program said.
delays = results.table("port_delay")
print(delays.groupby("cc")["value"].max() * 1.024)

# %% The report's figures, the one of port_delay.py among them.
for name, figure in results.figures().items():
    figure.savefig(f"{name}.svg")
print("figures:", *sorted(results.figures()))
