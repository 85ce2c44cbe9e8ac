"""Numbers as people read them: ages, times, sizes, rates."""

from inferbus_contracts.envelope import format_time

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


def age(milliseconds: int | None) -> str:
    """How long ago, in at most two units as kubectl writes it: `5s`, `3m12s`, `4h`, `2d3h`.

    Empty for None; what lies ahead is `0s`.
    """
    if milliseconds is None:
        return ""
    seconds = max(milliseconds, 0) // 1000
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    return f"{days}d"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def size(number: int | None) -> str:
    """`512 B`, `1.5 MiB`; empty for None."""
    if number is None:
        return ""
    value, unit = float(number), 0
    while value >= 1024 and unit < len(_SIZES) - 1:
        value, unit = value / 1024, unit + 1
    return f"{number} B" if unit == 0 else f"{value:.1f} {_SIZES[unit]}"


def number(value: float | None) -> str:
    """Four significant digits, whole numbers whole up to a billion; empty for None."""
    if value is None:
        return ""
    if abs(value) >= 10**9:
        return f"{value:.4g}"
    return str(round(value)) if value == round(value) or abs(value) >= 10**4 else f"{value:.4g}"


def latency(milliseconds: float | None) -> str:
    """`85ms`, `1.24s`, `15.3s`, `115s`; empty for None."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:.0f}ms"
    seconds = milliseconds / 1000
    decimals = 2 if seconds < 10 else 1 if seconds < 100 else 0
    return f"{seconds:.{decimals}f}s"


def clock_time(time_ms: int) -> str:
    """`13:05:22.123`, UTC."""
    return format_time(time_ms)[11:-1]
