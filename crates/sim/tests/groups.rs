//! The coordinator loads its log again after every record of a group's life, in every way in which
//! a process can end. I-24 is looked at after every event, and in the end the group settles.

use highwater_sim::scenario::play;

/// Joins, a rebalance of two, of three, a leave, a death, commits all along.
fn story(shards: u16, reload: &str) -> String {
    format!(
        "# A group lives, and its coordinator loads again.\n\
         node shards={shards} offsets.topic.num.partitions=1 group.initial.rebalance.delay.ms=0 \
         log.flush.interval.messages=1\n\
         topic orders partitions=3\n\
         produce orders-0 records=3\n\
         produce orders-2 records=2\n\
         {reload}\n\
         join g member=11 topics=orders heartbeat=500 polls=50 commits=400\n\
         join g member=12 topics=orders heartbeat=700 polls=50 commits=500\n\
         settle g\n\
         join g member=13 topics=orders heartbeat=600 instance=one polls=40 commits=300\n\
         settle g\n\
         leave member=12\n\
         settle g\n\
         kill member=13\n\
         join g member=14 topics=orders heartbeat=600 instance=one polls=40 commits=300\n\
         advance 12s\n\
         settle g\n\
         offsets g\n\
         show records\n"
    )
}

fn told(story: &str) -> Vec<String> {
    let played = play(story).unwrap_or_else(|why| panic!("{why} in\n{story}"));
    played.trace.lines().to_vec()
}

fn records(lines: &[String]) -> u64 {
    let last = lines.last().expect("a last line");
    let count = last.strip_suffix(" records in the log of the groups");
    let count = count.unwrap_or_else(|| panic!("'{last}' counts no records"));
    count.parse().expect("a number")
}

#[test]
fn the_coordinator_may_reload_after_any_record() {
    let mut reloads = 0;
    for shards in 1..=3 {
        let undisturbed = records(&told(&story(shards, "")));
        assert!(undisturbed > 8, "only {undisturbed} records");
        for how in ["crash", "power-off", "stop"] {
            for at in 1..=undisturbed {
                let lines = told(&story(shards, &format!("reload-at {at} {how}")));
                let starts = lines.iter().filter(|it| it.as_str() == "1: start");
                reloads += starts.count() - 1;
            }
        }
    }
    assert!(reloads > 70, "only {reloads} reloads");
}

#[test]
fn the_coordinator_may_reload_again_and_again() {
    for shards in 1..=3 {
        for how in ["crash", "power-off"] {
            let lines = told(&story(shards, &format!("reload-at 1 {how} every=yes")));
            let starts = lines.iter().filter(|it| it.as_str() == "1: start").count();
            assert!(starts > 2, "only {starts} starts");
        }
    }
}
