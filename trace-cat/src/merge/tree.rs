//! A tournament of keys: which of many streams comes next, at the cost of one comparison per doubling of their number.

/// A key that comes after every other: its stream has ended.
pub const END: u128 = u128::MAX;

/// A tree of losers. Each inner node remembers who lost there, so that a changed winner plays only on its way up.
#[derive(Debug)]
pub struct Tree {
    keys: Vec<u128>,
    /// `losers[0]` is the winner; node `n` has the children `2n` and `2n + 1`, and the leaf of key `i` is `keys.len() + i`.
    losers: Vec<u32>,
}

impl Tree {
    /// The tree of these keys, which all differ unless they are [`END`].
    pub fn new(keys: Vec<u128>) -> Tree {
        let count = keys.len();
        let mut losers = vec![0; count.max(1)];
        let mut winners: Vec<u32> = vec![0; 2 * count];
        for (leaf, winner) in winners.iter_mut().skip(count).enumerate() {
            *winner = leaf as u32;
        }
        for node in (1..count).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let left_wins = keys[left as usize] <= keys[right as usize];
            (winners[node], losers[node]) = if left_wins { (left, right) } else { (right, left) };
        }
        losers[0] = winners.get(1).copied().unwrap_or(0);
        Tree { keys, losers }
    }

    /// The index of the smallest key, or `None` if all are at their end.
    pub fn winner(&self) -> Option<usize> {
        let winner = self.losers[0] as usize;
        self.keys.get(winner).is_some_and(|&key| key != END).then_some(winner)
    }

    /// Gives the winner another key and finds the new winner.
    pub fn replace(&mut self, key: u128) {
        let mut winner = self.losers[0];
        let mut node = (self.keys.len() + winner as usize) / 2;
        self.keys[winner as usize] = key;
        let mut key = key;
        while node > 0 {
            let loser = self.losers[node];
            let other = self.keys[loser as usize];
            if other < key {
                self.losers[node] = winner;
                (winner, key) = (loser, other);
            }
            node /= 2;
        }
        self.losers[0] = winner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn streams_come_out_sorted_whatever_their_number() {
        let mut random = Random::seeded("tree", 3);
        for count in 0..40 {
            let mut next = 0;
            let mut streams: Vec<Vec<u128>> = (0..count).map(|_| Vec::new()).collect();
            for _ in 0..count * random.below(9) {
                next += 1 + random.below(3) as u128;
                streams[random.below(count)].push(next);
            }
            let mut expected: Vec<u128> = streams.concat();
            expected.sort_unstable();
            let mut streams: Vec<_> = streams.into_iter().map(Vec::into_iter).collect();
            let first: Vec<u128> = streams.iter_mut().map(|stream| stream.next().unwrap_or(END)).collect();
            let mut heads = first.clone();
            let mut tree = Tree::new(first);
            let mut found = Vec::new();
            while let Some(winner) = tree.winner() {
                found.push(heads[winner]);
                heads[winner] = streams[winner].next().unwrap_or(END);
                tree.replace(heads[winner]);
            }
            assert_eq!(found, expected, "{count} streams");
        }
    }
}
