//! What crossbeam waits by. In each part a thread sleeps until main wakes it.

use std::sync::Arc;

use crates::part;
use crossbeam_utils::sync::{Parker, ShardedLock, WaitGroup};

fn main() {
    let (sender, receiver) = crossbeam_channel::bounded::<u32>(1);
    part("channel::recv", move || assert_eq!(receiver.recv(), Ok(7)), || sender.send(7).unwrap());
    let (sender, receiver) = crossbeam_channel::bounded::<u32>(0);
    part("channel::send", move || sender.send(8).unwrap(), || assert_eq!(receiver.recv(), Ok(8)));

    let parker = Parker::new();
    let unparker = parker.unparker().clone();
    part("Parker", move || parker.park(), || unparker.unpark());

    let lock = Arc::new(ShardedLock::new(0));
    let held = lock.read().unwrap();
    let shared = Arc::clone(&lock);
    part("ShardedLock::write", move || *shared.write().unwrap() += 1, || drop(held));
    let held = lock.write().unwrap();
    let shared = Arc::clone(&lock);
    part("ShardedLock::read", move || assert_eq!(*shared.read().unwrap(), 1), || drop(held));

    let group = WaitGroup::new();
    let other = group.clone();
    part("WaitGroup", move || group.wait(), || drop(other));
}
