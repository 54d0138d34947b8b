//! The table of `specs/scenarios.md`.

/// A row.
pub(crate) struct Row {
    /// The number of the scenario.
    pub number: u8,
    /// The files in `model/tests/scenarios/`.
    pub files: Vec<String>,
    /// The column behind them: where else it is tested, or why it is not.
    pub elsewhere: String,
}

/// The rows, in order.
pub(crate) fn rows(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix('|')?.trim_end_matches('|').split('|').map(str::trim).collect();
        let number = cells.first()?.parse().ok()?;
        assert_eq!(cells.len(), 4, "{line}");
        let files = cells[2].split(", ").map(|f| f.trim_matches('`').to_owned()).filter(|f| !f.is_empty()).collect();
        Some(Row { number, files, elsewhere: cells[3].to_owned() })
    };
    text.lines().filter_map(row).collect()
}
