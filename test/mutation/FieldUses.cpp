//===- FieldUses.cpp - what each field is to a user of the plan -----------===//
#include "test/mutation/FieldEdits.h"

#include <string>
#include <string_view>

namespace ds::mutation {
namespace {

using enum FieldClass;

struct Row {
  std::string_view field; ///< a name that ends in '*' stands for all that begin so
  FieldClass fieldClass;
  const char *why;
};

// The first that fits counts.
constexpr Row rows[] = {
    {"ConfigAnswer.*", ForPeople, "what became of each key"},
    {"Pipeline.*", ForPeople, "how the model was cut"},
    {"Stage.*", ForPeople, "how the model was cut"},
    {"SentValue.*", ForPeople, "how the model was cut"},
    {"Recompute.*", ForPeople, "how much is repeated"},
    {"Plan.compiler_revision", ForPeople, "who compiled it"},
    {"Plan.model", ForPeople, "the model's name"},
    {"Plan.config", ForPeople, "what became of each key"},
    {"Plan.config_json", ForPeople, "the configuration; verify --config reads the file"},
    {"Plan.bucket_elements", ForPeople, "what the configuration asks of buckets"},
    {"Plan.pipeline", ForPeople, "how the model was cut"},
    {"Length.pipeline", ForPeople, "how the model was cut"},
    {"Plan.recompute", ForPeople, "how much is repeated"},
    {"Plan.numerics", Trusted, "make proof compares weights with the class"},
    {"Link.*", ForPeople, "how long reports think that transfers take"},
    {"Machine.links", ForPeople, "how long reports think that transfers take"},
    {"Machine.rates", ForPeople, "how long reports think that commands take"},
    {"Rates.*", ForPeople, "how long reports think that commands take"},
    {"Machine.*", Trusted, "ds-run compares it with the machine that it finds"},
    {"Plan.machine", Trusted, "ds-run compares it with the machine that it finds"},
    {"Plan.sources", Trusted, "verify --model --config compares it"},
    {"Sources.*", Trusted, "verify --model --config compares it"},
    {"Plan.nvme", Trusted, "the configuration's SHA-256; it changes no value"},
    {"NvmeFile.*", Trusted, "the configuration's SHA-256; it changes no value"},
    {"Training.checkpoint_buffer_bytes", Trusted, "the configuration's SHA-256; it changes no value"},
    {"Training.*", Trusted, "verify --config derives it again"},
    {"Plan.training", Trusted, "verify --config derives it again"},
    {"WeightFile.*", Trusted, "ds-run compares size and CRC-32C, verify --model the place"},
    {"Plan.weight_files", Trusted, "ds-run compares size and CRC-32C, verify --model the place"},
    {"Variable.placement", Proved, ""},
    {"Variable.*", Trusted, "verify --model --config derives names, kinds, types, ties, owners and first values again"},
    {"Plan.variables", Trusted,
     "verify --model --config derives names, kinds, types, ties, owners and first values again"},
    {"Source.*", Trusted, "verify --model derives first values again"},
    {"FileRange.*", Trusted, "verify --model derives first values again"},
    {"Random.*", Trusted, "verify --model derives first values again"},
    {"Input.placement", Proved, ""},
    {"Input.*", Trusted,
     "verify --model derives it again; limit and ignored, by what the reference program does with it"},
    {"Plan.inputs", Trusted, "verify --model derives it again"},
    {"Plan.reference", Trusted, "ds-audit compares it with the model, verify --config its settings"},
    {"Reference.*", Trusted, "ds-audit compares it with the model, verify --config its settings"},
    {"ReferenceOp.*", Trusted, "ds-audit compares it with the model, verify --config its settings"},
    {"ReferenceValue.*", Trusted, "ds-audit compares it with the model, verify --config its settings"},
    {"Plan.dimension", Trusted, "verify --model compares it with the inputs' dimensions"},
    {"Plan.size", Trusted, "verify --model compares it with the inputs' dimensions"},
    {"Length.size", Trusted, "verify --model compares it with the inputs' dimensions"},
    {"Plan.shorter", Trusted, "which sizes there are; each that there is, is proved"},
    {"Length.inputs", Trusted, "verify --model derives it again"},
    {"Length.reference", Trusted, "ds-audit compares it with the model, verify --config its settings"},
    {"Attribute.setting", Trusted, "which key ds-run --set would change"},
    {"Plan.codes", Trusted, "the checker runs it on drawn numbers and compares every element that it writes"},
    {"DeviceCode.*", Trusted, "the checker runs it on drawn numbers and compares every element that it writes"},
    {"Plan.tuning", Trusted,
     "cuBLASLt checks an algorithm before it runs it; ds-run --tune takes only ones with the same bits"},
    {"Tuning.*", Trusted,
     "cuBLASLt checks an algorithm before it runs it; ds-run --tune takes only ones with the same bits"},
    {"KernelCommand.algorithm", Trusted,
     "cuBLASLt checks an algorithm before it runs it; ds-run --tune takes only ones with the same bits"},
    {"KernelCommand.code", Trusted, "the checker runs it on drawn numbers and compares every element that it writes"},
    {"Arena.peak_live_bytes", ForPeople, "what reports print beside the arena's size"},
    {"Buffer.name", ForPeople, "what errors call it"},
    {"Role.name", ForPeople, "what errors call it"},
    {"Queue.name", ForPeople, "what errors call it"},
    {"Event.name", ForPeople, "what errors call it"},
    {"Communicator.name", ForPeople, "what errors call it"},
    {"Channel.name", ForPeople, "what errors call it"},
    {"Bucket.name", ForPeople, "what errors call it"},
    {"Bucket.gathered", ForPeople, "how often it is made whole"},
    {"Routine.name", ForPeople, "what errors call it"},
    {"Routine.phase", ForPeople, "what it is for"},
    {"Routine.stage", ForPeople, "what it is for"},
};

} // namespace

FieldUse useOf(const std::string &field) {
  for (const Row &row : rows) {
    const bool all = row.field.ends_with('*');
    if (all ? field.starts_with(row.field.substr(0, row.field.size() - 1)) : field == row.field)
      return {row.fieldClass, row.why};
  }
  return {};
}

} // namespace ds::mutation
