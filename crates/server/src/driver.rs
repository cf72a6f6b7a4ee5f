use std::rc::Rc;
use std::time::Duration;

use highwater_node::Input;
use highwater_types::{Millis, Mono};
use tokio::sync::mpsc;

use crate::host::Host;
use crate::mailbox::Mail;

/// A tick that comes later than this was held up by a stall of the whole thread.
const STALL: Millis = Millis::new(100);
/// Mails taken between two looks at the sockets.
const MAILS_PER_TURN: usize = 128;
/// Longest that peers get to take the answers that wait for them when the thread ends.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// Drives one machine until it is told to exit: its mail, its timer, and the sweep over its
/// connections. Waiting inputs run before ticks. What is answered by then still leaves.
pub(crate) async fn drive(host: Rc<Host>, mut mail: mpsc::UnboundedReceiver<Mail>) {
    until_exit(&host, &mut mail).await;
    let farewell = say_farewell(&host, &mut mail);
    if tokio::time::timeout(FAREWELL_MAX, farewell).await.is_err() {
        tracing::debug!("some peers did not take their last answers in time");
    }
}

async fn until_exit(host: &Rc<Host>, mail: &mut mpsc::UnboundedReceiver<Mail>) {
    let clock = host.shared.clock;
    let mut sweep_at = None;
    // No tick twice at one time, whatever the machine says.
    let mut ticked = None;
    // A machine's first input.
    host.push(Input::Tick);
    host.run();
    loop {
        let deadline = host.arm().map(|at| match ticked {
            Some(last) if at <= last => last.plus(Millis::new(1)),
            _ => at,
        });
        let overdue = host.loopback_deadline();
        let next: Option<Mono> = [deadline, sweep_at, overdue].into_iter().flatten().min();
        let timer = async {
            match next {
                Some(at) => tokio::time::sleep_until(clock.instant(at).into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            got = mail.recv() => {
                let Some(first) = got else { return };
                let opens = matches!(first, Mail::Connection(_));
                if !take(host, first, mail) {
                    return;
                }
                if sweep_at.is_none() && opens {
                    sweep_at = Some(clock.mono());
                }
            }
            () = host.deadline_moved() => {}
            () = timer => {
                if deadline.is_some_and(|at| clock.mono().since(at) > STALL) {
                    // First let the sockets deliver what came in during the stall.
                    tokio::task::yield_now().await;
                    tokio::task::yield_now().await;
                }
                if let Ok(first) = mail.try_recv()
                    && !take(host, first, mail)
                {
                    return;
                }
            }
        }
        let now = clock.mono();
        if deadline.is_some_and(|at| at <= now) {
            ticked = Some(now);
            host.push(Input::Tick);
            host.run();
        }
        if overdue.is_some_and(|at| at <= now) {
            host.give_up_overdue();
        }
        if sweep_at.is_some_and(|at| at <= now) {
            sweep_at = host.sweep();
        }
    }
}

/// Lets every connection send what waits in it, and end.
async fn say_farewell(host: &Rc<Host>, mail: &mut mpsc::UnboundedReceiver<Mail>) {
    host.close_all();
    while !host.is_deserted() {
        tokio::select! {
            () = host.deserted() => {}
            // The machine takes nothing any more, but cold answers may still come from the disk.
            got = mail.recv() => if let Some(warmed @ Mail::Warmed(_)) = got {
                take(host, warmed, mail);
            }
        }
    }
    // Those whose answers are out already read away what came in meanwhile: closing a socket with
    // unread bytes would take back what its peer did not receive yet.
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
}

/// Takes a run of mails and steps. `false`: the thread has to end.
fn take(host: &Rc<Host>, first: Mail, mail: &mut mpsc::UnboundedReceiver<Mail>) -> bool {
    let mut next = Some(first);
    let mut left = MAILS_PER_TURN;
    let mut going_on = true;
    while let Some(one) = next {
        going_on = host.take_mail(one).is_some();
        left -= 1;
        next = if going_on && left > 0 {
            mail.try_recv().ok()
        } else {
            None
        };
    }
    host.run();
    going_on
}
