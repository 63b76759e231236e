//! The conditions of `--fail-if`: `contention > 5%`, `p99(queue.lock) > 2ms`, `deadlocks > 0`.

use super::nearest_name::nearest_of;
use super::time_point::duration;
use crate::support::visible_text::visible;

/// A condition under which a report fails.
#[derive(Clone, Debug, PartialEq)]
pub struct FailCondition {
    /// As it was written.
    pub text: String,
    pub figure: Figure,
    pub comparison: Comparison,
    pub limit: Quantity,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Figure {
    Contention,
    Idleness,
    Deadlocks,
    Stuck,
    Cycles,
    /// Each finding once, however often it happened.
    Misuse,
    Lost,
    /// How much worse something became certainly.
    Regression,
    /// Of the object with this name or address.
    OfObject(ObjectFigure, String),
}

/// A figure of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFigure {
    Waits,
    Waited,
    Mean,
    P50,
    P90,
    P99,
    Max,
    Held,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    More,
    AtLeast,
    Less,
    AtMost,
}

/// A limit, or a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    Percent(f64),
    /// In nanoseconds.
    Duration(u64),
    Count(u64),
}

const OF_TRACE: [(&str, Figure); 8] = [
    ("contention", Figure::Contention),
    ("idleness", Figure::Idleness),
    ("deadlocks", Figure::Deadlocks),
    ("stuck", Figure::Stuck),
    ("cycles", Figure::Cycles),
    ("misuse", Figure::Misuse),
    ("lost", Figure::Lost),
    ("regression", Figure::Regression),
];
const OF_OBJECT: [(&str, ObjectFigure); 8] = [
    ("waits", ObjectFigure::Waits),
    ("waited", ObjectFigure::Waited),
    ("mean", ObjectFigure::Mean),
    ("p50", ObjectFigure::P50),
    ("p90", ObjectFigure::P90),
    ("p99", ObjectFigure::P99),
    ("max", ObjectFigure::Max),
    ("held", ObjectFigure::Held),
];
const COMPARISONS: [(&str, Comparison); 4] =
    [(">=", Comparison::AtLeast), ("<=", Comparison::AtMost), (">", Comparison::More), ("<", Comparison::Less)];

impl FailCondition {
    /// Parses a condition. The error names the column.
    pub fn parse(text: &str) -> Result<FailCondition, String> {
        let at = |rest: &str| text[..text.len() - rest.len()].chars().count() + 1;
        let error = |rest: &str, what: &str| format!("column {}: {what}", at(rest));
        let start = text.trim_start();
        let end = start.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(start.len());
        let (name, rest) = start.split_at(end);
        let names = || OF_TRACE.iter().map(|(name, _)| *name).chain(OF_OBJECT.iter().map(|(name, _)| *name));
        let (figure, rest) = if let Some((_, figure)) = OF_TRACE.iter().find(|(known, _)| *known == name) {
            (figure.clone(), rest)
        } else if let Some((_, figure)) = OF_OBJECT.iter().find(|(known, _)| *known == name) {
            let expected = format!("the name or address of an object is expected: {name}(queue.lock)");
            let inner = rest.trim_start().strip_prefix('(').ok_or_else(|| error(rest, &expected))?;
            let length = closing_parenthesis(inner).ok_or_else(|| error(inner, "there is no ) for this name"))?;
            let object = inner[..length].trim();
            if object.is_empty() {
                return Err(error(inner, &expected));
            }
            (Figure::OfObject(*figure, visible(object).into_owned()), &inner[length + 1..])
        } else {
            let tip = nearest_of(name, names()).map(|near| format!("\n\n  tip: there is '{near}'")).unwrap_or_default();
            let list = names().collect::<Vec<_>>().join(", ");
            let of_objects = OF_OBJECT.len();
            return Err(error(
                start,
                &format!("a figure is expected: {list} (the last {of_objects} of an object){tip}"),
            ));
        };
        let rest = rest.trim_start();
        let comparison =
            COMPARISONS.iter().find_map(|(sign, comparison)| Some((*comparison, rest.strip_prefix(sign)?)));
        let (comparison, rest) = comparison.ok_or_else(|| error(rest, "one of > >= < <= is expected"))?;
        let rest = rest.trim_start();
        let limit = figure.limit(rest.trim_end()).map_err(|what| error(rest, what))?;
        Ok(FailCondition { text: text.trim().to_owned(), figure, comparison, limit })
    }
}

/// Where the parenthesis ends that an object's name is in; names of functions may have some, too.
fn closing_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.char_indices().find_map(|(index, letter)| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        (depth == 0).then_some(index)
    })
}

impl Figure {
    /// A limit for this figure.
    fn limit(&self, text: &str) -> Result<Quantity, &'static str> {
        let percent = || text.strip_suffix('%')?.trim_end().parse().ok().filter(|share: &f64| share.is_finite());
        let percent = || percent().filter(|share| *share >= 0.0).map(Quantity::Percent);
        let time = || duration(text).ok().map(Quantity::Duration);
        let count = || text.parse().ok().map(Quantity::Count);
        match self {
            Figure::Contention | Figure::Idleness => {
                percent().or_else(time).ok_or("a share of the threads' time or a duration is expected: 5%, 200ms")
            }
            Figure::Regression => percent().ok_or("a percentage is expected: 10%"),
            Figure::OfObject(ObjectFigure::Waits, _) => count().ok_or("a number is expected: 0"),
            Figure::OfObject(..) => time().ok_or("a duration is expected: 2ms, 800us"),
            _ => count().ok_or("a number is expected: 0"),
        }
    }
}

impl Comparison {
    /// Whether a figure is beyond the limit.
    pub fn holds(self, figure: Quantity, limit: Quantity) -> bool {
        let number = |quantity: Quantity| match quantity {
            Quantity::Percent(share) => share,
            Quantity::Duration(number) | Quantity::Count(number) => number as f64,
        };
        let (figure, limit) = (number(figure), number(limit));
        match self {
            Comparison::More => figure > limit,
            Comparison::AtLeast => figure >= limit,
            Comparison::Less => figure < limit,
            Comparison::AtMost => figure <= limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Figure, Comparison, Quantity) {
        let FailCondition { figure, comparison, limit, .. } = FailCondition::parse(text).unwrap();
        (figure, comparison, limit)
    }

    #[test]
    fn every_form() {
        use Comparison::{AtLeast, AtMost, Less, More};
        assert_eq!(parsed("contention > 5%"), (Figure::Contention, More, Quantity::Percent(5.0)));
        assert_eq!(parsed(" idleness>=1.5 % "), (Figure::Idleness, AtLeast, Quantity::Percent(1.5)));
        assert_eq!(parsed("contention<2s"), (Figure::Contention, Less, Quantity::Duration(2_000_000_000)));
        assert_eq!(parsed("regression > 10%"), (Figure::Regression, More, Quantity::Percent(10.0)));
        assert_eq!(parsed("deadlocks > 0"), (Figure::Deadlocks, More, Quantity::Count(0)));
        let object = |figure, name: &str| Figure::OfObject(figure, name.to_owned());
        let limit = Quantity::Duration(2_000_000);
        assert_eq!(parsed("p99(queue.lock) > 2ms"), (object(ObjectFigure::P99, "queue.lock"), More, limit));
        let name = "mutex of f(int) a.cc:4 #2";
        assert_eq!(parsed(&format!("max( {name} ) <= 2ms")), (object(ObjectFigure::Max, name), AtMost, limit));
        assert_eq!(parsed("waits(0x10)>3"), (object(ObjectFigure::Waits, "0x10"), More, Quantity::Count(3)));
    }

    #[test]
    fn errors_name_the_column() {
        for (text, expected) in [
            ("", "column 1: a figure is expected: contention, "),
            ("  contenton > 5%", "column 3: a figure is expected"),
            ("contenton > 5%", "tip: there is 'contention'"),
            ("p99 > 2ms", "column 4: the name or address of an object is expected: p99(queue.lock)"),
            ("p99() > 2ms", "column 5: the name"),
            ("p99(a(b) > 2ms", "column 5: there is no )"),
            ("contention = 5%", "column 12: one of > >= < <= is expected"),
            ("contention > 5", "column 14: a share of the threads' time or a duration"),
            ("contention > -5%", "column 14: a share"),
            ("contention > NaN%", "column 14: a share"),
            ("deadlocks > 1ms", "column 13: a number is expected"),
            ("regression > 3", "column 14: a percentage is expected"),
            ("max(ä) > 5", "column 10: a duration is expected"),
            ("max(a) > 5ms now", "column 10: a duration is expected"),
        ] {
            let error = FailCondition::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
