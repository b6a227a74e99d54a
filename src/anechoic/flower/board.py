"""Where a federation stands, as its server tells it: what somebody who follows a run wants to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Seat:
    """One machine, as the server sees it.

    Attributes
    ----------
    state : str
        A word, and the reason where there is one.
    spent : float
        The ρ that it last said it has spent.
    rounds, late : int
        In how many rounds it took part, and how often another was asked in its place.
    """

    state: str = "starting"
    spent: float = 0.0
    rounds: int = 0
    late: int = 0


@dataclass
class Board:
    """Where a run stands, by the events of :func:`anechoic.flower.trial.run`.

    >>> board = Board(2)
    >>> board.take({"event": "joined", "machine": 0, "place": 1, "spent": 0.0})
    >>> board.take({"event": "left", "machine": 0, "why": "its budget is spent"})
    'machine 1 has left: its budget is spent'
    """

    machines: int
    seats: list[Seat] = field(init=False)
    round: int = 0
    rounds: int = 0
    measured: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.seats = [Seat() for _ in range(self.machines)]
        self._places: dict[int, int] = {}

    def take(self, event: Mapping[str, Any]) -> str | None:
        """Take in what happened, and return a line about it where it is worth one."""
        match event:
            case {"event": "up", "seconds": seconds}:
                for seat in self.seats:
                    seat.state = "online"
                return f"{self.machines} machines are online after {seconds:.1f} s"
            case {"event": "joined", "machine": number, "place": int(place), "spent": spent}:
                self._places[number] = place
                self.seats[place].state, self.seats[place].spent = "ready", spent
            case {"event": "declined", "place": int(place), "why": why}:
                self.seats[place].state = f"declined: {why}"
                return f"machine {place} has declined: {why}"
            case {"event": "asked", "machines": asked}:
                for number in asked:
                    self._seat(number).state = "works"
            case {"event": "answered", "machine": number, "spent": spent}:
                seat = self._seat(number)
                seat.state, seat.spent, seat.rounds = "answered", spent, seat.rounds + 1
            case {"event": "silent", "machine": None, "place": int(place), "why": why}:
                self.seats[place].state = f"cannot join yet: {why}"
                return f"machine {place} cannot join yet: {why}"
            case {"event": "silent", "machine": int(number), "why": why}:
                seat = self._seat(number)
                seat.state, seat.late = f"late: {why}", seat.late + 1
                return f"machine {self._name(number)} is late: {why}"
            case {"event": "left", "machine": number, "why": why}:
                self._seat(number).state = f"left: {why}"
                return f"machine {self._name(number)} has left: {why}"
            case {"event": "round"}:
                return self._close(event)
            case {"event": "measured", **found}:
                self.measured = {name: value for name, value in found.items() if name != "round"}
                told = ", ".join(f"{name} {value:.4g}" for name, value in self.measured.items())
                return f"after round {self.round}: {told}"
        return None

    def _close(self, event: Mapping[str, Any]) -> str:
        """Note that a round is closed."""
        self.round, self.rounds = event["round"], event["rounds"]
        for seat in self.seats:
            if seat.state in ("works", "answered"):
                seat.state = "ready"
        who = ", ".join(self._name(number) for number in event["machines"])
        return f"round {self.round} of {self.rounds}: machines {who} took part, {event['seconds']:.1f} s"

    def _seat(self, number: int) -> Seat:
        place = self._places.get(number)
        return Seat() if place is None else self.seats[place]

    def _name(self, number: int) -> str:
        return str(self._places.get(number, "?"))
