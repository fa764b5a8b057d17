"""Protocols, mechanisms and load balancers by name, with their typed parameters.

A protocol's name is `base` or `base+mechanism+...` (`hpcc+vai+sf`); a mechanism may be a protocol of its own
(`eqds+mprdma`). Parameters of the base are given by name, those of a mechanism in a table of the mechanism's name:
`{"eta": 0.95, "vai": {"ai_cap_tokens": 100}}`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import pydantic

from host_agents.config import CC_SCOPES, GO_BACK_N, RELIABILITIES, SCOPE_QP, SELECTIVE_REPEAT
from host_agents.errors import HostError, PacketError, ParameterError, UnknownNameError
from host_agents.lengths import INT_SHIM_BYTES, ROCE, Lengths
from host_agents.ranges import NOT_NEGATIVE, ONE_OF
from p4switch.errors import UserError, suggest
from p4switch.registry import Registry

if TYPE_CHECKING:
    from host_agents.cc.base import NotificationPoint, Path, ReactionPoint
    from host_agents.collective.injection import Injection
    from host_agents.config import NicConfig
    from host_agents.lb.base import LoadBalancer
    from host_agents.packets import Opcodes, Packet


def _none_besides(parameters: object, mechanisms: Mapping[str, Any]) -> tuple[int, ...]:
    """Return no classes, since data of most protocols uses the NIC's class."""
    return ()


def _deaf(parameters: object, path: Path) -> NotificationPoint:
    """Return the notification point of protocols whose receivers only acknowledge."""
    from host_agents.cc.base import NotificationPoint

    point = NotificationPoint(path)
    point.listens = False
    return point


@dataclass(frozen=True)
class ProtocolInfo:
    """Declaration of a protocol in its file.

    `program` is the P4 program (without .p4) that the switches must run; `telemetry` makes data
    packets carry an INT shim. `agrees` names parameters that the program must have, too, with the
    same values. `packets` are the protocol's own packets, with opcodes from 0xE4 to 0xFE; a protocol
    that uses the packets of another one names it in `packets_of`. `parameters` is a dataclass with
    defaults. `mechanisms` are the names of mechanisms or other protocols that may follow the
    protocol's name; `reaction_point` gets a mechanism's parameters, or a protocol as a `Protocol`.
    `scopes` are the possible scopes of a reaction point, and `scope` is the default
    (`NicConfig.cc_scope`).
    """

    name: str
    summary: str
    source: str
    program: str
    parameters: type[Any]
    reaction_point: Callable[[Any, Mapping[str, Any], Path], ReactionPoint]
    notification_point: Callable[[Any, Path], NotificationPoint] = _deaf
    # Set for a protocol for collectives, which is refused if a workload has none. Arguments are the
    # parameters, and the cycles by which a packet may be late.
    injection: Callable[[Any, float], Injection] | None = None
    telemetry: bool = False
    agrees: tuple[str, ...] = ()
    mechanisms: tuple[str, ...] = ()
    packets: tuple[Packet, ...] = ()
    packets_of: str = ""  # owner of the packets, and name of their P4 include; "": this protocol
    scope: str = SCOPE_QP
    scopes: tuple[str, ...] = CC_SCOPES
    reliabilities: tuple[str, ...] = RELIABILITIES  # reliabilities that it supports
    # True: it requests each lost packet by itself, so go-back-N would waste the data after it.
    selective: bool = False
    # True: information on a flow's path has to be valid for its next packets, so no load balancer
    # may change the path.
    single_path: bool = False
    # True: a receiver's packets have to use the same links as the data that they belong to, in the
    # other direction.
    symmetric_paths: bool = False
    max_switches: int = 0  # largest number of switches on a path for which its packets have room; 0: unlimited
    # Approximate mean number of its own packets per data packet, for forecasts of a run's work.
    own_packets: float = 0.0
    # What limits a sender with an unlimited window: grants before it sends (credits, rates of
    # switches), feedback on data in the same queues, or nothing. Forecasts of a run's memory use
    # it.
    held_back_by: Literal["grants", "feedback", "nothing"] = "feedback"
    # True: the protocol has packets of its own, but a queue pair that is done can drop its reaction
    # point once the point is `at_rest`.
    rests: bool = False
    # For a transport other than the NIC's: function of the parameters and the NIC's configuration
    # that returns the configuration of its queue pairs.
    nic: Callable[[Any, NicConfig], NicConfig] | None = None
    lengths: Lengths = ROCE  # lengths of its data and their answers
    ecn_capable: bool = True  # whether switches may mark its data; otherwise they drop it if there is no room
    # Classes of data besides the NIC's, with lower precedence; PFC pauses them, too.
    priorities: Callable[[Any, Mapping[str, Any]], tuple[int, ...]] = _none_besides

    def data_bytes(self, payload_bytes: int) -> int:
        """Return the length of a data packet when it leaves its host, including an INT shim."""
        return self.lengths.data_bytes(payload_bytes) + (INT_SHIM_BYTES if self.telemetry else 0)


@dataclass(frozen=True)
class MechanismInfo:
    """Part that can be added to a protocol (`vai`, `sf`), together with the mechanisms that it `needs`."""

    name: str
    summary: str
    source: str
    parameters: type[Any]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadBalancerInfo:
    name: str
    summary: str
    source: str
    parameters: type[Any]
    # Arguments: parameters, seed of the QP, and knowledge of its network.
    create: Callable[[Any, int, Path], LoadBalancer]
    # True: packets of one QP take several paths, so reordering is normal and go-back-N is not
    # supported.
    per_packet: bool = False


@dataclass(frozen=True)
class Protocol:
    """A protocol with its mechanisms and checked parameters, ready for any number of NICs."""

    name: str
    info: ProtocolInfo
    parameters: Any
    mechanisms: Mapping[str, Any]

    def scope(self, wanted: str | None) -> str:
        """Return the scope of a reaction point: `wanted`, or the protocol's default.

        Raises ParameterError if the protocol does not have this scope.
        """
        scope = wanted or self.info.scope
        if scope not in self.info.scopes:
            raise ParameterError(f"{self.name}: cc_scope {scope!r}: expected one of: {', '.join(self.info.scopes)}")
        return scope

    @property
    def priorities(self) -> tuple[int, ...]:
        """Priorities of the protocol's data besides the NIC's."""
        return self.info.priorities(self.parameters, self.mechanisms)

    def usual_reliability(self, per_packet: bool) -> str:
        """Return the default reliability.

        `per_packet` means that packets of a flow take several paths.
        """
        usual = SELECTIVE_REPEAT if per_packet or self.info.selective else GO_BACK_N
        return usual if usual in self.info.reliabilities else self.info.reliabilities[0]

    def check_reliability(self, wanted: str) -> None:
        """Raise ParameterError if the protocol does not support this reliability."""
        if self.info.nic is None and wanted not in self.info.reliabilities:
            expected = ", ".join(self.info.reliabilities)
            raise ParameterError(f"{self.name}: reliability {wanted!r}: expected one of: {expected}")

    def nic_config(self, config: NicConfig) -> NicConfig:
        """Return the configuration of the protocol's queue pairs on a NIC with `config`."""
        return config if self.info.nic is None else self.info.nic(self.parameters, config)

    def reaction_point(self, path: Path) -> ReactionPoint:
        return self.info.reaction_point(self.parameters, self.mechanisms, path)

    def notification_point(self, path: Path) -> NotificationPoint:
        return self.info.notification_point(self.parameters, path)

    def injection(self, slack_cycles: float) -> Injection:
        """Return the injection control of collective operations.

        Raises HostError if the protocol does not support collectives.
        """
        if self.info.injection is None:
            having = ", ".join(name for name, info in protocols().items() if info.injection is not None)
            raise HostError(f"protocol {self.name!r} is not for collectives; expected one of: {having}")
        return self.info.injection(self.parameters, slack_cycles)

    @functools.cached_property
    def opcodes(self) -> Opcodes:
        """Packets that its NICs know: those of the transport, its own, and those of protocols among its mechanisms.

        Raises PacketError if two have the same opcode, or if one has an opcode outside the range
        for protocols.
        """
        # Compiled modules, which must not be imported before `use_native`; this module may be.
        from host_agents.headers import THE_TRANSPORT, TRANSPORT
        from host_agents.packets import Opcodes
        from host_agents.wire import FIRST_CONTROL

        for packet in self.info.packets:
            if packet.opcode < FIRST_CONTROL:
                raise PacketError(
                    f"packet {packet.name!r} of {self.info.name}: opcode {packet.opcode:#04x}; expected 0xe4 to 0xfe"
                )
        own = Opcodes({THE_TRANSPORT: TRANSPORT, self.info.packets_of or self.info.name: self.info.packets})
        for added in self.mechanisms.values():
            if isinstance(added, Protocol):
                own = own.joined(added.opcodes)
        return own

    @functools.cached_property
    def retires(self) -> bool:
        """True if a queue pair that is done frees its sending half.

        A protocol with packets of its own, or with such a protocol among its mechanisms, keeps it
        unless that protocol `rests`.
        """
        added = [each for each in self.mechanisms.values() if isinstance(each, Protocol)]
        return (self.info.rests or not self.info.packets) and all(each.retires for each in added)

    def resolved(self) -> dict[str, Any]:
        """Return every parameter with its value, for the record of a run."""
        values: dict[str, Any] = dict(dataclasses.asdict(self.parameters))
        for name, added in self.mechanisms.items():
            values[name] = added.resolved() if isinstance(added, Protocol) else dataclasses.asdict(added)
        return values


@dataclass(frozen=True)
class LoadBalancing:
    """A load balancer with checked parameters."""

    name: str
    info: LoadBalancerInfo
    parameters: Any

    def create(self, seed: int, path: Path) -> LoadBalancer:
        return self.info.create(self.parameters, seed, path)


_protocols = Registry[ProtocolInfo]("protocol", group="p4cc.cc", package="host_agents.cc", base=ProtocolInfo)
_mechanisms = Registry[MechanismInfo]("mechanism", group="p4cc.cc", package="host_agents.cc", base=MechanismInfo)
_load_balancers = Registry[LoadBalancerInfo](
    "load balancer", group="p4cc.lb", package="host_agents.lb", base=LoadBalancerInfo
)
# Making one takes milliseconds, and a sweep needs hundreds.
_models: dict[type[Any], type[pydantic.BaseModel]] = {}
KINDS: dict[str, Registry[Any]] = {"cc": _protocols, "lb": _load_balancers}  # by key of a scenario


def register(info: ProtocolInfo | MechanismInfo | LoadBalancerInfo) -> None:
    """Register a protocol, mechanism or load balancer; called at the end of its file.

    Raises UserError for a name that is taken, and for an invalid declaration.
    """
    _check(info)
    if isinstance(info, ProtocolInfo):
        _protocols.add(info.name, info, stacklevel=2)
    elif isinstance(info, MechanismInfo):
        _mechanisms.add(info.name, info, stacklevel=2)
    else:
        _load_balancers.add(info.name, info, stacklevel=2)


def _check(info: ProtocolInfo | MechanismInfo | LoadBalancerInfo) -> None:
    """Raise UserError if the parameters are no dataclass, or if one of them has no default."""
    if not isinstance(info, ProtocolInfo | MechanismInfo | LoadBalancerInfo):
        raise UserError(f"register: expected a ProtocolInfo, MechanismInfo or LoadBalancerInfo, got {info!r}")
    model = info.parameters
    if not (isinstance(model, type) and dataclasses.is_dataclass(model)):
        raise UserError(f"{info.name}: its parameters should be a dataclass, got {model!r}")
    for field in dataclasses.fields(model):
        if field.default is dataclasses.MISSING:
            raise UserError(f"{info.name}: parameter {field.name} should have a default value")
    if isinstance(info, ProtocolInfo) and info.telemetry and any(packet.wraps for packet in info.packets):
        raise UserError(f"{info.name}: either telemetry or packets that wrap data; expected not both")


def protocols() -> dict[str, ProtocolInfo]:
    return _protocols.all()


def mechanisms() -> dict[str, MechanismInfo]:
    return _mechanisms.all()


def mechanism(name: str) -> MechanismInfo | None:
    """Return a mechanism; None if the name is that of a protocol."""
    return _mechanisms.get(name)


def load_balancers() -> dict[str, LoadBalancerInfo]:
    return _load_balancers.all()


def outside(cc: Iterable[str], lb: Iterable[str]) -> list[tuple[str, str]]:
    """Return (key, name) of protocols and load balancers from outside p4cc, without their mechanisms."""
    used = [*(("cc", name.split("+")[0]) for name in cc), *(("lb", name) for name in lb)]
    return [(key, name) for key, name in dict.fromkeys(used) if KINDS[key].origin(name)]


def _limits(hint: Any, declared: Mapping[Any, Any]) -> dict[str, Any]:
    """Return pydantic's checks besides the type: the declared range, and that values are finite."""
    if hint not in (int, float):
        return {key: limit for key, limit in declared.items() if key != ONE_OF}
    return {**(declared or NOT_NEGATIVE), **({"allow_inf_nan": False} if hint is float else {})}


def model(cls: type[Any]) -> type[pydantic.BaseModel]:
    """Return the model that checks values for the parameter class `cls`: its types, defaults and ranges."""
    if cls not in _models:
        _models[cls] = _model(cls)
    return _models[cls]


def _model(cls: type[Any]) -> type[pydantic.BaseModel]:
    hints = get_type_hints(cls, include_extras=True)
    for f in dataclasses.fields(cls):
        if ONE_OF in f.metadata:
            hints[f.name] = Literal.__getitem__(f.metadata[ONE_OF])
    fields: dict[str, Any] = {
        f.name: (hints[f.name], pydantic.Field(default=f.default, **_limits(hints[f.name], f.metadata)))
        for f in dataclasses.fields(cls)
    }
    model: type[pydantic.BaseModel] = pydantic.create_model(cls.__name__, **fields)
    return model


def _build(owner: str, cls: type[Any], values: Mapping[str, Any]) -> Any:
    """Return an instance of the parameter class `cls` with values checked by pydantic."""
    checks = model(cls)
    fields = checks.model_fields
    mistakes = [
        f"{owner} has no parameter {key!r}; {suggest(key, fields) if fields else 'it has none'}"
        for key in values
        if key not in fields
    ]
    try:
        checked = checks.model_validate(dict(values))
    except pydantic.ValidationError as error:
        mistakes += [_message(owner, one) for one in error.errors(include_url=False)]
    if mistakes:
        raise ParameterError("; ".join(mistakes))
    return cls(**{name: getattr(checked, name) for name in fields})


def _message(owner: str, mistake: Any) -> str:
    key = ".".join(str(part) for part in mistake["loc"])
    return f"{owner}: parameter {key}: {mistake['msg'][0].lower()}{mistake['msg'][1:]} (got {mistake['input']!r})"


def resolve(name: str, parameters: Mapping[str, Any] | None = None) -> Protocol:
    """Return the protocol `name`, with its mechanisms and parameters; omitted parameters have defaults.

    Raises UnknownNameError for an unknown name, and ParameterError for an invalid parameter.
    """
    base, *added = name.split("+")
    info = _protocols.get(base)
    if info is None:
        raise UnknownNameError(f"unknown protocol {base!r}; {suggest(base, protocols())}")
    own = dict(parameters or {})
    extra: dict[str, Any] = {}
    for mechanism in added:
        if mechanism not in info.mechanisms:
            hint = suggest(mechanism, info.mechanisms)
            raise UnknownNameError(f"protocol {base!r} has no mechanism {mechanism!r}; {hint}")
        given = own.pop(mechanism, {})
        if not isinstance(given, Mapping):
            raise ParameterError(f"{name}: parameter {mechanism}: expected a table of {mechanism}'s own parameters")
        part = _mechanisms.get(mechanism)
        for needed in part.needs if part is not None else ():
            if needed not in added:
                raise ParameterError(
                    f"protocol {name!r}: {mechanism} needs {needed}; expected {base}+{needed}+{mechanism}"
                )
        if part is None:
            extra[mechanism] = resolve(mechanism, given)
        else:
            extra[mechanism] = _build(mechanism, part.parameters, given)
    return Protocol(name, info, _build(base, info.parameters, own), extra)


def resolve_load_balancer(name: str, parameters: Mapping[str, Any] | None = None) -> LoadBalancing:
    """Return the load balancer `name` with its parameters.

    Raises UnknownNameError for an unknown name, and ParameterError for an invalid parameter.
    """
    info = _load_balancers.get(name)
    if info is None:
        raise UnknownNameError(f"unknown load balancer {name!r}; {suggest(name, load_balancers())}")
    return LoadBalancing(name, info, _build(name, info.parameters, parameters or {}))
