//! What came of a calibration, for people.

use crate::diagnostic::quantity::{number, percent, time};
use crate::report::look::Look;
use crate::report::table::Table;
use crate::report::validation::between;
use crate::study::calibration::Calibrated;

/// The most entries that are shown.
const SHOWN: usize = 30;

/// Loads, forms and entries.
pub fn text(found: &Calibrated, look: Look) -> String {
    let off = |value: f64| format!("{:+.1}", 100.0 * value);
    let mut loads = Table::new(&[
        "LOAD",
        "SCENARIO",
        ">RATE (1/s)",
        ">PREDICTED",
        ">MEASURED",
        ">OFF BY (%)",
        ">LEFT OUT, OFF BY (%)",
    ]);
    for load in &found.loads {
        for (place, (name, rate, predicted, measured)) in load.scenarios.iter().enumerate() {
            loads.row(vec![
                if place == 0 { load.name.clone() } else { String::new() },
                name.to_string(),
                number(*rate),
                predicted.map_or_else(|| "–".to_owned(), time),
                time(*measured),
                predicted.map(|predicted| off(predicted / measured - 1.0)).unwrap_or_default(),
                load.left_out.filter(|_| place == 0).map(|own| format!("{:.1}", 100.0 * own)).unwrap_or_default(),
            ]);
        }
    }
    let mut forms = Table::new(&["FORM", ">OFF BY", "FITS AS WELL"]);
    for form in &found.forms {
        let error = if form.error.is_finite() { percent(form.error) } else { "no steady state".to_owned() };
        let fits = match (form.is_taken, form.fits) {
            (true, _) => "taken",
            (false, true) => "yes",
            (false, false) => "no",
        };
        forms.row(vec![form.name.clone(), error, fits.to_owned()]);
    }
    let mut entries =
        Table::new(&["ENTRY", "PROCESSOR", ">DEMAND", ">INTERVAL (95 %)", ">DELAY", ">RESPONSE OFF BY (%)"]);
    for entry in found.entries.iter().take(SHOWN) {
        entries.row(vec![
            entry.name.to_string(),
            entry.processor.to_string(),
            time(entry.demand),
            between(entry.interval, time),
            time(entry.delay),
            entry.error.map(off).unwrap_or_default(),
        ]);
    }
    let mut text = format!("{}\n{}\n{}", loads.render(look), forms.render(look), entries.render(look));
    if found.entries.len() > SHOWN {
        text.push_str(&format!("and {} entries more\n", found.entries.len() - SHOWN));
    }
    text
}
