//===- CheckpointArguments.cpp - flags of ds-run checkpoint and export ----===//
#include "tools/ds-run/CheckpointArguments.h"
#include "tools/ds-run/Arguments.h"

#include <CLI/CLI.hpp>

namespace ds::run {
namespace {

using Action = CheckpointArguments::Action;

void addExport(CLI::App &root, ExportArguments &asked) {
  CLI::App &app = *root.add_subcommand("export", "weights of a checkpoint as a file, or as a folder for transformers");
  app.description(
      "Writes the weights of a checkpoint, or of a file of --export, where other programs read them.\n\n"
      "  ds-run export run -o w.safetensors                 # float32, names as in PyTorch\n"
      "  ds-run export run --hf trained --like llama-saved   # types, shards, configuration, tokenizer of "
      "llama-saved\n"
      "  ds-run export run --hf lora --like llama-saved --adapter   # what --lora trained, as peft loads it\n"
      "  ds-run export run -o lora.safetensors --adapter    # what ds-opt compile --lora trained\n"
      "  ds-run export run --onnx trained.onnx --like model.onnx   # the graph of model.onnx with the trained "
      "values\n\n"
      "docs/hugging-face.md and docs/any-onnx.md have examples.");
  app.add_option("SOURCE", asked.source, "a folder of checkpoints, one checkpoint, or a safetensors file")->required();
  CLI::Option *file = app.add_option("-o,--output", asked.output, "a safetensors file");
  CLI::Option *folder = app.add_option("--hf", asked.folder, "a folder that transformers loads; it must not be there");
  CLI::Option *onnx = app.add_option("--onnx", asked.onnx, "an ONNX file; needs python3 with the package onnx");
  CLI::Option *like =
      app.add_option("--like", asked.like, "what was trained: for --hf its folder, for --onnx its file");
  CLI::Option *adapter =
      app.add_flag("--adapter", asked.adapter, "of --hf and -o: low-rank adapters alone, rather than merged");
  CLI::Option *weights = app.add_option("--weights", asked.weights,
                                        "of --onnx: what --weights was for ds-opt, where it found names there");
  weights->needs(onnx);
  file->excludes(folder)->excludes(onnx)->excludes(like);
  adapter->excludes(onnx);
  folder->needs(like)->excludes(onnx);
  onnx->needs(like);
}

void addCheckpoint(CLI::App &root, CheckpointArguments &asked) {
  CLI::App &app = *root.add_subcommand("checkpoint", "lists, verifies and converts checkpoints");
  app.require_subcommand(1);
  CLI::App &list = *app.add_subcommand("ls", "steps, times, bytes, layouts, and whether all is there");
  CLI::App &verify = *app.add_subcommand("verify", "compares every file with its SHA-256");
  for (CLI::App *command : {&list, &verify})
    command->add_option("DIR", asked.folder, "a folder of checkpoints, or one checkpoint")->required();
  CLI::App &convert = *app.add_subcommand("convert", "makes a checkpoint to --resume of one that DeepSpeed saved");
  convert.description("Makes a checkpoint to --resume of one that DeepSpeed saved with ZeRO 1, 2 or 3.\n\n"
                      "  ds-run checkpoint convert saved --from-deepspeed deepspeed-run/checkpoints\n\n"
                      "Needs python3 with PyTorch on the PATH; docs/checkpoints.md says what is taken over. Our own "
                      "checkpoints need no conversion for\nother ranks, ZeRO stages or pipeline stages.");
  convert.add_option("DIR", asked.folder, "the folder of checkpoints to write into")->required();
  convert
      .add_option("--from-deepspeed", asked.source, "the folder that save_checkpoint wrote, or one global_stepN of it")
      ->required();
}

} // namespace

void addCheckpointCommands(CLI::App &app, Arguments &arguments) {
  addExport(app, arguments.exporting);
  addCheckpoint(app, arguments.checkpoint);
}

bool tookCheckpointCommand(const CLI::App &app, Arguments &arguments) {
  if (app.got_subcommand("export")) {
    if (const ExportArguments &asked = arguments.exporting;
        asked.output.empty() && asked.folder.empty() && asked.onnx.empty())
      throw UsageError("ds-run export needs -o FILE, --hf FOLDER --like FOLDER or --onnx FILE --like FILE");
    arguments.command = Arguments::Command::Export;
    return true;
  }
  if (!app.got_subcommand("checkpoint"))
    return false;
  const CLI::App &checkpoint = *app.get_subcommand("checkpoint");
  arguments.checkpoint.action = checkpoint.got_subcommand("verify")    ? Action::Verify
                                : checkpoint.got_subcommand("convert") ? Action::Convert
                                                                       : Action::List;
  arguments.command = Arguments::Command::Checkpoint;
  return true;
}

} // namespace ds::run
