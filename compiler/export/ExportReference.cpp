//===- ExportReference.cpp - inputs and the single-device program ----------===//
#include "compiler/export/Exporter.h"
#include "compiler/export/Fields.h"
#include "core/Crc32c.h"
#include "dialects/Train/LocationName.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace ds;
using namespace ds::exporting;

void Exporter::exportInputs() {
  for (auto input : module_.getOps<plan::InputOp>()) {
    inputs_[input.getNameAttr()] = plan_.inputs_size();
    plan::proto::Input &message = *plan_.add_inputs();
    message.set_name(input.getName().str());
    exportType(input.getType(), message);
    message.set_tokens(input.getTokens().value_or("").str());
    message.set_limit(input.getLimit().value_or(0));
    if (auto ignored = input.getIgnored())
      message.set_ignored(*ignored);
    exportVaries(message);
  }
}

LogicalResult Exporter::exportReference() {
  auto reference = module_.lookupSymbol<ModuleOp>("reference");
  if (!reference)
    return module_.emitError("has no module @reference; ds-record-reference makes it");
  for (auto function : reference.getOps<func::FuncOp>()) {
    for (BlockArgument argument : function.getArguments()) {
      values_[argument] = plan_.reference().values_size();
      plan::proto::ReferenceValue &value = *plan_.mutable_reference()->add_values();
      auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "train.input");
      value.set_name(name ? name.str() : train::locationName(argument.getLoc()));
      exportType(argument.getType(), value);
    }
    for (Operation &op : function.getBody().front().without_terminator())
      if (failed(exportReferenceOp(op, function.getSymName())))
        return failure();
  }
  return success();
}

/// Each rank changes them by its own micro-batches: averages, and buffers that a micro-batch leaves for the next one.
void Exporter::exportRunningStatistics() {
  using plan::proto::Variable;
  std::set<unsigned> variables;
  for (const plan::proto::ReferenceOp &op : plan_.reference().ops())
    if (op.op() == train::UpdateAverageOp::getOperationName() ||
        (op.op() == train::StoreOp::getOperationName() && op.function() == "microbatch" &&
         plan_.variables(int(op.variables(0))).kind() == Variable::BUFFER))
      variables.insert(op.variables(0));
  for (unsigned variable : variables)
    exportVaries(*plan_.mutable_variables(int(variable)));
}

/// The number that all elements are, if a double surely holds it.
static std::optional<double> splatOf(ElementsAttr elements) {
  constexpr int64_t mostExact = int64_t(1) << 53;
  auto dense = dyn_cast<DenseElementsAttr>(elements);
  if (!dense || !dense.isSplat())
    return std::nullopt;
  if (isa<FloatType>(dense.getElementType()))
    return dense.getSplatValue<APFloat>().convertToDouble();
  const APInt number = dense.getSplatValue<APInt>();
  if (number.getBitWidth() == 1)
    return double(number.getBoolValue());
  const int64_t value = number.getSExtValue();
  return value > -mostExact && value < mostExact ? std::optional(double(value)) : std::nullopt;
}

/// One number, or a checksum of all elements: enough to tell constants apart.
static void exportConstant(ElementsAttr elements, plan::proto::ReferenceOp &message) {
  plan::proto::Attribute &field = *message.add_attributes();
  if (const std::optional<double> number = splatOf(elements)) {
    field.set_name("value");
    field.set_number(*number);
  } else {
    const std::string bytes = exportElements(elements);
    field.set_name("crc32c");
    field.set_integer(crc32c(std::as_bytes(std::span(bytes))));
  }
}

LogicalResult Exporter::exportReferenceOp(Operation &op, StringRef function) {
  plan::proto::Reference &reference = *plan_.mutable_reference();
  plan::proto::ReferenceOp &message = *reference.add_ops();
  message.set_op(op.getName().getStringRef().str());
  message.set_name(train::locationName(op.getLoc()));
  message.set_function(function.str());
  for (Value operand : op.getOperands())
    message.add_operands(values_.lookup(operand));
  for (Value result : op.getResults()) {
    message.add_results(reference.values_size());
    values_[result] = reference.values_size();
    plan::proto::ReferenceValue &value = *reference.add_values();
    value.set_name(train::locationName(result.getLoc()));
    exportType(result.getType(), value);
  }
  if (auto constant = dyn_cast<train::ConstantOp>(op))
    exportConstant(constant.getValue(), message);
  for (NamedAttribute attribute : op.getAttrDictionary()) {
    if (auto parameters = dyn_cast<DictionaryAttr>(attribute.getValue())) {
      for (NamedAttribute parameter : parameters)
        exportAttribute(parameter, *message.add_attributes());
      continue;
    }
    if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute.getValue())) {
      message.add_variables(variables_.lookup(symbol.getAttr()));
      continue;
    }
    if (attribute.getName() == "train.reference")
      continue;
    plan::proto::Attribute field;
    if (exportAttribute(attribute, field)) // types follow from the values
      *message.add_attributes() = std::move(field);
  }
  return success();
}
