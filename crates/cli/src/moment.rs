//! Moments and spans of time as people write them.

use std::time::Duration;

const MS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

/// Milliseconds since 1970 as `2026-11-30T12:00:00.000Z`.
pub(crate) fn utc_text(ms: i64) -> String {
    let (day, in_day) = (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY));
    let (year, month, day) = date_of(day);
    let (seconds, ms) = (in_day / 1000, in_day % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z")
}

/// Reads `2026-11-30`, `2026-11-30T12:00`, with or without seconds, milliseconds and a zone; UTC
/// without one, as in Kafka's tools. Gives milliseconds since 1970.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let (date, rest) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.splitn(3, '-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = digits(parts.next()?, 2)?;
    let days = days_since_1970(year, month, day)?;
    let ms = match rest {
        Some(time) => time_of_day(time)?,
        None => 0,
    };
    days.checked_mul(MS_PER_DAY)?.checked_add(ms)
}

/// Milliseconds since midnight UTC: `12:00`, `12:00:00`, `12:00:00.5`, each with `Z` or `+01:00`.
fn time_of_day(text: &str) -> Option<i64> {
    let zone_at = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (time, zone) = text.split_at_checked(zone_at)?;
    let mut parts = time.splitn(3, ':');
    let hours = digits(parts.next()?, 2).filter(|it| *it < 24)?;
    let minutes = digits(parts.next()?, 2).filter(|it| *it < 60)?;
    let (seconds, ms) = match parts.next() {
        None => (0, 0),
        Some(seconds) => match seconds.split_once('.') {
            None => (digits(seconds, 2)?, 0),
            Some((seconds, fraction)) => {
                let padded = format!("{fraction:0<3}");
                let ms = padded.get(..3).filter(|_| !fraction.is_empty())?;
                let is_number = fraction.bytes().all(|it| it.is_ascii_digit());
                (digits(seconds, 2)?, digits(ms, 3).filter(|_| is_number)?)
            }
        },
    };
    let seconds = Some(seconds).filter(|it| *it < 60)?;
    let zone_minutes = match zone {
        "" | "Z" => 0,
        _ => {
            let (sign, zone) = zone.split_at_checked(1)?;
            let (hours, minutes) = match zone.split_once(':') {
                Some((hours, minutes)) => (hours, minutes),
                None if zone.len() == 4 => zone.split_at_checked(2)?,
                None => (zone, "00"),
            };
            let minutes = digits(hours, 2)? * 60 + digits(minutes, 2)?;
            if sign == "-" { -minutes } else { minutes }
        }
    };
    Some(((hours * 60 + minutes - zone_minutes) * 60 + seconds) * 1000 + ms)
}

/// Reads `90s`, `15m`, `2h`, `7d`, `500ms`, and ISO 8601's `P7D` and `PT2H30M`.
pub(crate) fn parse_span(text: &str) -> Option<Duration> {
    let text = text.to_ascii_lowercase();
    let ms = match text.strip_prefix('p') {
        Some(iso) => {
            let (days, time) = match iso.split_once('t') {
                Some((_, "")) => return None,
                Some((days, time)) => (days, time),
                None => (iso, ""),
            };
            if iso.is_empty() {
                return None;
            }
            units(days, &["d"])?.checked_add(units(time, &["h", "m", "s"])?)?
        }
        None if text.is_empty() => return None,
        None => units(&text, &["d", "h", "m", "s", "ms"])?,
    };
    Some(Duration::from_millis(ms))
}

/// A sum of numbers with units, each unit once and in this order.
fn units(mut text: &str, allowed: &[&str]) -> Option<u64> {
    let mut allowed = allowed.iter();
    let mut total: u64 = 0;
    while !text.is_empty() {
        let number_end = text.find(|it: char| !it.is_ascii_digit())?;
        let (number, rest) = text.split_at_checked(number_end)?;
        let number: u64 = number.parse().ok()?;
        let unit_end = rest
            .find(|it: char| it.is_ascii_digit())
            .unwrap_or(rest.len());
        let (unit, rest) = rest.split_at_checked(unit_end)?;
        allowed.find(|it| **it == unit)?;
        let ms = match unit {
            "d" => 24 * 60 * 60 * 1000,
            "h" => 60 * 60 * 1000,
            "m" => 60 * 1000,
            "s" => 1000,
            _ => 1,
        };
        total = total.checked_add(number.checked_mul(ms)?)?;
        text = rest;
    }
    Some(total)
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Of the proleptic Gregorian calendar, by counting from the March of a year divisible by 400.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_in(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_go_there_and_back() {
        for (text, ms) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2026-11-30T12:43:01.500Z", 1_796_042_581_500),
            ("2000-02-29T23:59:59.999Z", 951_868_799_999),
            ("1969-12-31T23:59:59.000Z", -1000),
        ] {
            assert_eq!(utc_text(ms), text);
            assert_eq!(parse(text), Some(ms), "{text}");
        }
        for day in (-800_000..800_000).step_by(97) {
            let (year, month, of_month) = date_of(day);
            assert_eq!(days_since_1970(year, month, of_month), Some(day));
        }
    }

    #[test]
    fn moments_may_be_short_and_in_a_zone() {
        let noon = parse("2026-11-30T12:00:00.000Z");
        for text in [
            "2026-11-30T12:00",
            "2026-11-30T12:00:00",
            "2026-11-30T13:00+01:00",
            "2026-11-30T06:30:00.0-0530",
            "2026-11-30T14:00+02",
        ] {
            assert_eq!(parse(text), noon, "{text}");
        }
        assert_eq!(parse("2026-11-30").map(|it| it + MS_PER_DAY / 2), noon);
        for wrong in [
            "",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-11-30T",
            "2026-11-30T24:00",
            "2026-11-30T12:00:00.",
            "2026-11-30 12:00",
            "26-11-30",
            "2026-11-30T12:00:00.1x",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spans_have_units() {
        let of = |text: &str| parse_span(text).map(|it| it.as_millis());
        assert_eq!(of("90s"), Some(90_000));
        assert_eq!(of("1h30m"), Some(5_400_000));
        assert_eq!(of("500ms"), Some(500));
        assert_eq!(of("7d"), of("P7D"));
        assert_eq!(of("P1DT2H3M4S"), Some(93_784_000));
        for wrong in [
            "",
            "P",
            "PT",
            "5",
            "h",
            "5x",
            "5m5h",
            "5s5s",
            "-5s",
            "99999999999999999d",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
