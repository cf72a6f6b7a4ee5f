//! What is asked for.

use std::path::PathBuf;

use highwater_types::PlantedBug;

const USAGE: &str = "\
usage: planted [--bug NAME] [WORK]

  --bug NAME      only this bug; without it, each in turn (with a WORK other than the table: none)

  --up-to N       the table: for each bug, does its scenario find it, and which is the first seed
                  below N that does (without a WORK: 1000)
  --seeds A..B    plays these seeds of one node and names those that find something
  --seed N        plays one and prints its trace
  --of clusters   before --seeds and --seed: of clusters of three to five brokers
  --play FILE     plays a scenario and prints what would be recorded";

/// The seeds that a bug may take at the most.
const SEEDS_MAX: u64 = 1000;

/// The command line.
#[derive(Debug)]
pub(crate) struct Options {
    /// The one bug that is looked at.
    pub(crate) bug: Option<PlantedBug>,
    /// Seeds are those of clusters.
    pub(crate) is_of_clusters: bool,
    /// What is done.
    pub(crate) work: Work,
}

/// What is done.
#[derive(Debug)]
pub(crate) enum Work {
    /// Shows that each bug is found.
    Table { seeds: u64 },
    /// Plays many seeds.
    Seeds { from: u64, to: u64 },
    /// Plays one seed.
    Seed(u64),
    /// Plays a scenario.
    Play(PathBuf),
}

impl Options {
    /// Reads a command line, without the program's name.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            bug: None,
            is_of_clusters: false,
            work: Work::Table { seeds: SEEDS_MAX },
        };
        while let Some(argument) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            match argument.as_str() {
                "--bug" => options.bug = Some(bug(&value)?),
                "--up-to" => {
                    let seeds = number(&value)?;
                    options.work = Work::Table { seeds };
                }
                "--seeds" => {
                    let (from, to) = value.split_once("..").ok_or(USAGE)?;
                    let (from, to) = (number(from)?, number(to)?);
                    options.work = Work::Seeds { from, to };
                }
                "--of" if value == "clusters" => options.is_of_clusters = true,
                "--seed" => options.work = Work::Seed(number(&value)?),
                "--play" => options.work = Work::Play(value.into()),
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(options)
    }
}

fn bug(name: &str) -> Result<PlantedBug, String> {
    let mut bugs = PlantedBug::ALL.iter();
    let found = bugs.find(|it| it.name() == name).copied();
    found.ok_or_else(|| {
        let names: Vec<&str> = PlantedBug::ALL.iter().map(|it| it.name()).collect();
        format!("there is no bug '{name}'; there are {}", names.join(", "))
    })
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{text}' is no number"))
}
