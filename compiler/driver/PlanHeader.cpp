//===- PlanHeader.cpp - what a plan says of how it was made ---------------===//
#include "compiler/driver/PlanHeader.h"

#include "compiler/import/files/Files.h"
#include "core/Error.h"
#include "core/Sha256.h"
#include "runtime/plan/format/PlanFile.h"

#include <span>

using namespace mlir;
using namespace ds;
using namespace ds::driver;
namespace fs = std::filesystem;

plan::proto::Machine ds::driver::describedMachine(const config::Machine &machine) {
  plan::proto::Machine to;
  to.set_name(machine.name);
  to.set_device(machine.device);
  to.set_isa(machine.isa);
  to.set_threads(machine.threads);
  to.set_alignment(machine.alignment);
  to.set_device_memory(machine.deviceMemory);
  to.set_host_memory(machine.hostMemory);
  to.set_reserve(machine.reserve);
  for (const config::Link &link : machine.links) {
    plan::proto::Link &line = *to.add_links();
    line.set_between(link.between);
    line.set_bytes_per_second(link.bytesPerSecond);
    line.set_latency_seconds(link.latencySeconds);
  }
  if (const Rates &rates = machine.rates; rates.known()) {
    plan::proto::Rates &line = *to.mutable_rates();
    line.set_bytes_per_second(rates.bytes);
    line.set_command_seconds(rates.commandSeconds);
    line.set_float32_flops(rates.float32);
    line.set_tf32_flops(rates.tf32);
    line.set_bfloat16_flops(rates.bfloat16);
    line.set_fp8_flops(rates.fp8);
    line.set_attention_flops(rates.attention);
    line.set_multiprocessors(uint32_t(rates.multiprocessors));
  }
  return to;
}

void ds::driver::describe(const CompileRequest &request, const config::Config &config, const config::Machine &machine,
                          ModuleOp module, plan::proto::Plan &plan) {
  plan.set_format_version(plan::formatVersion);
  plan.set_compiler_revision(DS_VERSION);
  plan.set_model(module.getSymName().value_or(fs::path(request.model.path).stem().string()).str());
  *plan.mutable_machine() = describedMachine(machine);
  if (config.nvme) {
    plan.mutable_nvme()->set_folder(config.nvme->folder);
    plan.mutable_nvme()->set_block_bytes(config.nvme->blockBytes);
    plan.mutable_nvme()->set_queue_depth(config.nvme->queueDepth);
  }
  plan.set_config_json(config::resolvedJson(config));
  for (const config::KeyAnswer &answer : config.answers) {
    plan::proto::ConfigAnswer &line = *plan.add_config();
    line.set_path(answer.path);
    line.set_value_json(answer.valueJson);
    line.set_status(answer.status);
    line.set_note(answer.note);
  }
  if (config.ranks > 1)
    plan.set_bucket_elements(uint64_t(config.zero.bucketElements()));
  plan.mutable_training()->set_micro_batch_size(config.microBatchSize);
  plan.mutable_training()->set_accumulation_steps(config.accumulationSteps);
  plan.mutable_training()->set_train_batch_size(config.trainBatchSize);
  plan.mutable_training()->set_checkpoint_buffer_bytes(config.checkpointBuffer);
}

[[noreturn]] static void refuseChanged(const fs::path &file) {
  throw Error(file.string() + " was changed while it was read; compile it again");
}

void ds::driver::recordSources(const CompileRequest &request, const std::vector<std::string> &sets,
                               const std::string &model, const std::string &configuration, const fs::path &planFolder,
                               plan::proto::Plan &plan) {
  plan::proto::Sources &sources = *plan.mutable_sources();
  if (sha256OfFile(import::modelFile(request.model.path)) != model)
    refuseChanged(request.model.path);
  sources.set_model_sha256(model);
  sources.set_configuration_sha256(sha256(std::as_bytes(std::span(configuration))));
  sources.mutable_overrides()->Assign(sets.begin(), sets.end());
  sources.mutable_trainable()->Assign(request.model.trainable.begin(), request.model.trainable.end());
  sources.mutable_frozen()->Assign(request.model.frozen.begin(), request.model.frozen.end());
  sources.set_lora_rank(uint32_t(request.model.loraRank));
  sources.set_lora_targets(request.model.loraTargets);
  sources.mutable_flags()->Assign(request.flags.begin(), request.flags.end());
  for (const std::string &pass : request.without)
    sources.add_flags("--without=" + pass);
  if (!request.model.weights.empty())
    sources.set_weights(fs::absolute(request.model.weights)
                            .lexically_proximate(fs::absolute(planFolder.empty() ? "." : planFolder))
                            .string());
  for (plan::proto::WeightFile &file : *plan.mutable_weight_files()) {
    const fs::path path = (planFolder / file.path()).lexically_normal(); // the plan's folder need not be there
    const auto opened = import::InputFile::open(path);
    if (opened->size() != file.size())
      refuseChanged(path);
    if (const std::string header = import::safetensorsHeader(*opened); !header.empty())
      file.set_header_sha256(sha256(std::as_bytes(std::span(header))));
  }
}
