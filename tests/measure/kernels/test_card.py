"""The card is read beside the samples."""

from scripts.measure.kernels import card


def test_the_card_is_read_at_every_tenth_sample(monkeypatch):
    clocks = iter([1980, 1500, 1800])
    monkeypatch.setattr(
        card, "reading", lambda: {"mhz": next(clocks), "celsius": 40, "watt": 600.0}
    )
    made = card.Card()
    assert made.summary() == {}
    for _ in range(25):
        made.look()
    assert made.summary() == {
        "mhz": 1800,
        "least_mhz": 1500,
        "celsius": 40,
        "watt": 600.0,
    }


def test_the_slow_command_is_asked_once(monkeypatch):
    asked = []

    def slow():
        asked.append(1)
        return {"mhz": 1, "celsius": 2, "watt": 3.0}

    monkeypatch.setattr(card, "reading", dict)
    monkeypatch.setattr(card, "reading_of_the_command", slow)
    made = card.Card()
    for _ in range(25):
        made.look()
    assert len(asked) == 1 and made.summary()["mhz"] == 1


def test_without_a_card_there_is_nothing_to_read():
    assert card.reading() == {}
