//! Plays scenarios and seeds with a bug planted, and takes down what the checkers say.

use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use highwater_sim::{run_cluster_seed, run_seed, scenario};
use highwater_types::{PlantedBug, plant};

/// What the last panic said: its words and its place.
static LAST_WORDS: Mutex<String> = Mutex::new(String::new());

/// For each bug, or one: its scenario finds it, and so does one of the first `seeds` seeds.
pub(crate) fn table(only: Option<PlantedBug>, seeds: u64) -> Result<(), String> {
    take_down_panics();
    println!("| bug | found by its scenario | found by seed | as |\n|---|---|---|---|");
    let mut missed = Vec::new();
    for bug in PlantedBug::ALL {
        if only.is_some_and(|only| only != bug) {
            continue;
        }
        let name = bug.name();
        plant(None);
        if let Some(why) = of_scenario(bug)? {
            return Err(format!("{name}: its scenario fails without it: {why}"));
        }
        plant(Some(bug));
        let by_scenario = of_scenario(bug)?;
        let is_of_clusters = bug.scenario().starts_with("replication/");
        let by_seed = (0..seeds).find_map(|seed| Some((seed, of_seed(seed, is_of_clusters)?)));
        plant(None);
        let (scenario, file) = (verdict(by_scenario.as_ref()), bug.scenario());
        let (seed, words) = match &by_seed {
            Some((seed, words)) => (seed.to_string(), first_line(words).to_owned()),
            None => (format!("none of {seeds}"), String::new()),
        };
        println!("| `{name}` | {scenario}: `{file}` | {seed} | {words} |");
        if by_scenario.is_none() || by_seed.is_none() {
            missed.push(name);
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    Err(format!("not found: {}", missed.join(", ")))
}

/// Plays many seeds and names those that find something.
pub(crate) fn seeds(
    bug: Option<PlantedBug>,
    is_of_clusters: bool,
    from: u64,
    to: u64,
) -> Result<(), String> {
    take_down_panics();
    plant(bug);
    let mut found = 0;
    for seed in from..to {
        if let Some(words) = of_seed(seed, is_of_clusters) {
            found += 1;
            println!("seed {seed}: {words}");
        }
    }
    println!(
        "{found} of {} seeds find something",
        to.saturating_sub(from)
    );
    if found == 0 {
        return Ok(());
    }
    Err("see above".to_owned())
}

/// Plays one seed and prints its trace.
pub(crate) fn one_seed(
    bug: Option<PlantedBug>,
    is_of_clusters: bool,
    seed: u64,
) -> Result<(), String> {
    plant(bug);
    let tell = |line: &str| println!("{line}");
    let report = if is_of_clusters {
        run_cluster_seed(seed, tell)
    } else {
        run_seed(seed, tell)
    };
    println!("{report:?}");
    Ok(())
}

/// Plays a scenario and prints what would be recorded.
pub(crate) fn play(bug: Option<PlantedBug>, file: &Path) -> Result<(), String> {
    plant(bug);
    let text = std::fs::read_to_string(file).map_err(|why| why.to_string())?;
    let played = scenario::play(&text).map_err(|why| why.to_string())?;
    print!("{}", played.recorded);
    Ok(())
}

/// What a checker says while the bug's scenario is played, or how its trace differs.
fn of_scenario(bug: PlantedBug) -> Result<Option<String>, String> {
    let path = scenarios().join(bug.scenario());
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|why| format!("{}: {why}", path.display()))?;
    let played = panic::catch_unwind(AssertUnwindSafe(|| scenario::play(&text)));
    Ok(match played {
        Err(_) => Some(last_words()),
        Ok(Err(why)) => Some(why.to_string()),
        Ok(Ok(played)) if !played.matches => Some("another story is told".to_owned()),
        Ok(Ok(_)) => None,
    })
}

/// What a checker says in a random run.
fn of_seed(seed: u64, is_of_clusters: bool) -> Option<String> {
    let run = panic::catch_unwind(|| {
        if is_of_clusters {
            run_cluster_seed(seed, |_| ())
        } else {
            run_seed(seed, |_| ())
        }
    });
    run.err().map(|_| last_words())
}

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/sim/scenarios")
}

fn take_down_panics() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let words = info.payload_as_str().unwrap_or("a panic without words");
        if let Ok(mut last) = LAST_WORDS.lock() {
            *last = format!("{words} ({place})");
        }
    }));
}

fn last_words() -> String {
    let last = LAST_WORDS.lock();
    last.map(|words| words.clone()).unwrap_or_default()
}

fn first_line(words: &str) -> &str {
    words.lines().next().unwrap_or_default()
}

fn verdict(words: Option<&String>) -> String {
    words.map_or_else(|| "no".to_owned(), |words| first_line(words).to_owned())
}
