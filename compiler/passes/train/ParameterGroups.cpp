//===- ParameterGroups.cpp - which parameters are updated otherwise -------===//
#include "compiler/passes/train/ParameterGroups.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

#include "llvm/Support/Regex.h"

using namespace mlir;

namespace ds {

static std::optional<double> numberOf(DictionaryAttr group, StringRef name) {
  if (auto number = group.getAs<FloatAttr>(name))
    return number.getValueAsDouble();
  return std::nullopt;
}

LogicalResult ParameterGroups::read(StringRef list, ModuleOp module) {
  Attribute parsed;
  {
    const ScopedDiagnosticHandler silent(module.getContext(), [](Diagnostic &) { return success(); });
    parsed = parseAttribute(("[" + list + "]").str(), module.getContext());
  }
  auto groups = dyn_cast_if_present<ArrayAttr>(parsed);
  if (!groups)
    return module.emitError() << "parameter-groups is \"" << list << "\", which is no list of groups";
  for (Attribute one : groups) {
    auto group = dyn_cast<DictionaryAttr>(one);
    auto match = group ? group.getAs<StringAttr>("match") : StringAttr();
    if (!match)
      return module.emitError() << "parameter-groups has " << one << ", which has no match";
    if (std::string error; !llvm::Regex(match.getValue()).isValid(error))
      return module.emitError() << "deepstatic.parameter_groups: \"" << match.getValue()
                                << "\" is no regular expression: " << error;
    groups_.push_back({.match = match.str(),
                       .weightDecay = numberOf(group, "weight_decay"),
                       .lrFactor = numberOf(group, "lr_factor").value_or(1)});
  }
  return success();
}

ParameterGroup *ParameterGroups::of(StringRef parameter) {
  for (ParameterGroup &group : groups_)
    if (llvm::Regex(group.match).match(parameter)) {
      group.used = true;
      return &group;
    }
  return nullptr;
}

LogicalResult ParameterGroups::requireUsed(ModuleOp module) const {
  for (const ParameterGroup &group : groups_)
    if (!group.used)
      return module.emitError()
             << "deepstatic.parameter_groups: \"" << group.match
             << "\" matches no trained parameter that no group before it has; leave it out, or look for "
                "names in ds-opt report";
  return success();
}

} // namespace ds
