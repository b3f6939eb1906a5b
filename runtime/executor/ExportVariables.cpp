//===- ExportVariables.cpp - --export -------------------------------------===//
#include "runtime/executor/ExportVariables.h"

#include "runtime/core/DType.h"
#include "runtime/core/Error.h"
#include "runtime/data/SafetensorsWriter.h"
#include "runtime/executor/Executor.h"
#include "runtime/plan/AtomicFile.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

bool isExported(const plan::proto::Variable &variable) {
  return variable.kind() == plan::proto::Variable::PARAMETER ||
         (variable.kind() == plan::proto::Variable::BUFFER && variable.persistent());
}

bool isHeld(const plan::proto::Role &role, uint32_t variable) {
  for (const plan::proto::Buffer &buffer : role.buffers())
    if (buffer.has_variable() && buffer.variable() == variable)
      return true;
  return false;
}

} // namespace

void checkExport(const plan::proto::Plan &plan, const Executor &executor, const std::string &path) {
  plan::requireWritableFolder(path);
  if (!executor.device().executes())
    throw Error("--export needs a device that computes; the null device has no weights");
  for (int i = 0; i < plan.variables_size(); ++i)
    if (isExported(plan.variables(i)) && !isHeld(executor.role(), uint32_t(i)))
      throw Error("variable " + plan.variables(i).name() + " cannot be exported: no buffer of the plan holds it");
}

void exportVariables(const plan::proto::Plan &plan, const Executor &executor, const std::string &path) {
  std::vector<TensorToWrite> tensors;
  std::map<std::string, std::string> metadata = {{"format", "pt"}}; // transformers refuses files without it
  for (int i = 0; i < plan.variables_size(); ++i) {
    const plan::proto::Variable &variable = plan.variables(i);
    if (!isExported(variable))
      continue;
    for (const std::string &alias : variable.aliases())
      metadata[alias] = variable.name();
    tensors.push_back({variable.name(), DType(variable.dtype()),
                       Shape(variable.shape().begin(), variable.shape().end()),
                       [&executor, i](const auto &sink) { executor.readVariable(uint32_t(i), sink); }});
  }
  writeSafetensors(path, std::move(tensors), metadata);
}

} // namespace ds::runtime
