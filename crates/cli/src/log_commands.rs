use std::io::Write as _;

use crate::args::{DumpArgs, LogCommand, Output};
use crate::log_dump::{self, Decoder, DumpOptions};
use crate::output;

/// `log dump` and `log verify`.
pub(crate) fn run(command: LogCommand, output: Output) -> anyhow::Result<()> {
    match command {
        LogCommand::Dump(args) => dump(&args, output),
        LogCommand::Verify { dirs } => crate::log_verify::run(&dirs, output),
    }
}

fn dump(args: &DumpArgs, output: Output) -> anyhow::Result<()> {
    let decoder = match args {
        DumpArgs {
            cluster_metadata_decoder: true,
            ..
        } => Decoder::Metadata,
        DumpArgs {
            offsets_decoder: true,
            ..
        } => Decoder::Offsets,
        DumpArgs {
            transaction_log_decoder: true,
            ..
        } => Decoder::Transactions,
        DumpArgs {
            share_group_state_decoder: true,
            ..
        } => Decoder::ShareState,
        _ => Decoder::Text,
    };
    let contents = args.print_data_log || decoder != Decoder::Text;
    let options = DumpOptions {
        deep: args.deep_iteration || contents,
        contents,
        record_metadata: !args.skip_record_metadata,
        decoder,
        json: output == Output::Json,
    };
    let mut out = output::stdout();
    let done = log_dump::dump(&args.files, options, &mut out);
    out.flush()?;
    done
}
