//! `skctl trace generate`: generates a realistic workload from a seed.

use anyhow::{Context, Result};
use indicatif::HumanCount;
use sk_trace::generate::{GenerateSpec, generate};

use crate::cli::{GenerateArgs, Global};
use crate::outputs::Destination;
use crate::text_file;

pub(crate) fn run(args: &GenerateArgs, global: &Global) -> Result<()> {
    let destination = Destination::new(&args.to.out, args.to.to)?;
    let mut spec = specification(args)?;
    if let Some(seed) = args.seed {
        spec.seed = seed;
    }
    let generated = destination.write(global, |format, out| generate(&spec, format, out))?;
    if !global.quiet {
        let (events, lives) = (HumanCount(generated.events), HumanCount(generated.lives));
        anstream::eprintln!("{events} events and the lives of {lives} pods, seed {}", spec.seed);
    }
    Ok(())
}

fn specification(args: &GenerateArgs) -> Result<GenerateSpec> {
    match (&args.spec, &args.preset) {
        (Some(path), _) => {
            let text = text_file::read("specification", path)?;
            GenerateSpec::from_text(&text).with_context(|| path.display().to_string())
        }
        (None, Some(preset)) => Ok(GenerateSpec::preset(preset)?),
        (None, None) => Ok(GenerateSpec::default()),
    }
}
