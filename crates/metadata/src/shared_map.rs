use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Entries per chunk before it is split in two.
const CHUNK_ENTRIES_MAX: usize = 64;

/// A sorted map whose copies share what they have in common.
///
/// A clone is one reference count. A change to a clone copies the list of chunks and the one chunk
/// that it touches, so an image of ten thousand topics costs a few hundred words per change.
/// Values are copied with their chunk: keep large ones in an `Arc`.
///
/// Invariant: no chunk is empty, and keys rise strictly within and across chunks.
pub struct SharedMap<K, V> {
    chunks: Arc<Vec<Chunk<K, V>>>,
    len: usize,
}

type Chunk<K, V> = Arc<Vec<(K, V)>>;

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self {
            chunks: Arc::default(),
            len: 0,
        }
    }

    /// The number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of `key`.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let chunk = self.chunks.get(self.chunk_of(key))?;
        let at = position(chunk, key).ok()?;
        chunk.get(at).map(|(_, value)| value)
    }

    /// Whether `key` is there.
    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// The value of `key`, to be changed in this copy only.
    pub fn value_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let index = self.chunk_of(key);
        let at = position(self.chunks.get(index)?, key).ok()?;
        let chunk = Arc::make_mut(Arc::make_mut(&mut self.chunks).get_mut(index)?);
        chunk.get_mut(at).map(|(_, value)| value)
    }

    /// Sets the value of `key` and returns the one it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let index = self.chunk_of(&key);
        let chunks = Arc::make_mut(&mut self.chunks);
        let Some(shared) = chunks.get_mut(index) else {
            chunks.push(Arc::new(vec![(key, value)]));
            self.len += 1;
            return None;
        };
        let chunk = Arc::make_mut(shared);
        match position(chunk, &key) {
            Ok(at) => chunk
                .get_mut(at)
                .map(|(_, old)| std::mem::replace(old, value)),
            Err(at) => {
                chunk.insert(at, (key, value));
                self.len += 1;
                if chunk.len() > CHUNK_ENTRIES_MAX {
                    let upper = chunk.split_off(chunk.len() / 2);
                    chunks.insert(index + 1, Arc::new(upper));
                }
                None
            }
        }
    }

    /// Removes `key` and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let index = self.chunk_of(key);
        let at = position(self.chunks.get(index)?, key).ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(chunks.get_mut(index)?);
        let (_, value) = chunk.remove(at);
        if chunk.is_empty() {
            chunks.remove(index);
        }
        self.len -= 1;
        Some(value)
    }

    /// All entries, by rising key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.chunks
            .iter()
            .flat_map(|chunk| chunk.iter())
            .map(|(key, value)| (key, value))
    }

    /// All keys, rising.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, by rising key.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// The entries at or above `from`, by rising key.
    pub fn range_from<'a, Q: Ord + ?Sized>(
        &'a self,
        from: &'a Q,
    ) -> impl Iterator<Item = (&'a K, &'a V)>
    where
        K: Borrow<Q>,
    {
        self.chunks
            .iter()
            .skip(self.chunk_of(from))
            .flat_map(|chunk| chunk.iter())
            .map(|(key, value)| (key, value))
            .skip_while(move |(key, _)| Borrow::<Q>::borrow(*key) < from)
    }

    /// The chunk where `key` is or would be: the last one that begins at or below it.
    fn chunk_of<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        let begins_at_or_below = |chunk: &Chunk<K, V>| {
            chunk
                .first()
                .is_some_and(|(first, _)| Borrow::<Q>::borrow(first) <= key)
        };
        self.chunks
            .partition_point(begins_at_or_below)
            .saturating_sub(1)
    }
}

fn position<K: Borrow<Q>, V, Q: Ord + ?Sized>(chunk: &[(K, V)], key: &Q) -> Result<usize, usize> {
    chunk.binary_search_by(|(other, _)| Borrow::<Q>::borrow(other).cmp(key))
}

impl<K: Ord + Clone, V: Clone> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        Self {
            chunks: Arc::clone(&self.chunks),
            len: self.len,
        }
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq> PartialEq for SharedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chunks, &other.chunks)
            || (self.len == other.len && self.iter().eq(other.iter()))
    }
}

impl<K: Ord + Clone, V: Clone + Eq> Eq for SharedMap<K, V> {}

impl<K: fmt::Debug + Ord + Clone, V: fmt::Debug + Clone> fmt::Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_btree_map_and_leaves_older_copies_alone(
            steps in proptest::collection::vec((0u8..3, 0u16..400, any::<u32>()), 0..600),
        ) {
            let mut model = BTreeMap::new();
            let mut map = SharedMap::new();
            let mut older = Vec::new();
            for (at, (verb, key, value)) in steps.into_iter().enumerate() {
                if verb == 0 {
                    prop_assert_eq!(map.remove(&key), model.remove(&key));
                } else {
                    prop_assert_eq!(map.insert(key, value), model.insert(key, value));
                }
                if at % 50 == 0 {
                    older.push((map.clone(), model.clone()));
                }
            }
            older.push((map, model));
            for (map, model) in older {
                prop_assert_eq!(map.len(), model.len());
                prop_assert!(map.iter().eq(model.iter()));
                prop_assert!(map.range_from(&200).eq(model.range(200..)));
                for key in 0..400 {
                    prop_assert_eq!(map.get(&key), model.get(&key));
                }
            }
        }
    }
}
