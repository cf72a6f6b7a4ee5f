//! Minimum, median and maximum of each figure, and ratios of medians.

#![allow(clippy::print_stdout, reason = "the report is the output")]

use std::collections::BTreeMap;

/// Told because it matters: bbr sends by timers, which over loopback cost more than the bytes.
const CONGESTION_CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Every sample, by measure and subject.
#[derive(Debug, Default)]
pub(super) struct Report {
    samples: BTreeMap<String, BTreeMap<&'static str, Vec<f64>>>,
}

struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

impl Report {
    /// Adds one sample.
    pub(super) fn add(&mut self, measure: impl Into<String>, subject: &'static str, value: f64) {
        self.samples
            .entry(measure.into())
            .or_default()
            .entry(subject)
            .or_default()
            .push(value);
    }

    /// Prints a table for people. Ratios are ours to the other's, by median.
    pub(super) fn print_table(&self) {
        if let Ok(name) = std::fs::read_to_string(CONGESTION_CONTROL) {
            println!(
                "TCP congestion control: {} (Kafka; the others are not paced over loopback)",
                name.trim()
            );
        }
        println!(
            "{:<40} {:<10} {:>10} {:>10} {:>10}  ours / it",
            "measure", "subject", "min", "median", "max"
        );
        for (measure, subjects) in &self.samples {
            for (subject, values) in subjects {
                let Spread { min, median, max } = spread(values);
                let ratio = match (*subject, subjects.get("highwater")) {
                    ("highwater", _) | (_, None) => String::new(),
                    (_, Some(ours)) => format!("{:.2}", spread(ours).median / median),
                };
                println!(
                    "{measure:<40} {subject:<10} {min:>10.3} {median:>10.3} {max:>10.3}  {ratio}"
                );
            }
        }
    }

    /// Prints the same for programs.
    pub(super) fn print_json(&self) {
        let mut rows = Vec::new();
        for (measure, subjects) in &self.samples {
            for (subject, values) in subjects {
                let Spread { min, median, max } = spread(values);
                rows.push(format!(
                    "{{\"measure\":\"{measure}\",\"subject\":\"{subject}\",\"min\":{min},\
                     \"median\":{median},\"max\":{max},\"samples\":{}}}",
                    values.len()
                ));
            }
        }
        println!("[{}]", rows.join(",\n "));
    }
}

fn spread(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    Spread {
        min: at(0),
        median: at(sorted.len() / 2),
        max: at(sorted.len().saturating_sub(1)),
    }
}
