//===- GraphInputs.cpp - what a model reads, and in which shapes ---------------===//
//
// Dimension 0 of the data counts samples, whatever an exporter calls it: it is the micro-batch. Keys and values of
// earlier tokens are no data. They are cut off by a length of 0, which is what they have before the first token.
//===----------------------------------------------------------------------===//
#include "compiler/import/Dims.h"
#include "compiler/import/GraphImporter.h"
#include "compiler/import/Hazards.h"
#include "compiler/import/LossFile.h"
#include "compiler/import/files/Failure.h"

#include "mlir/IR/Diagnostics.h"

#include <algorithm>
#include <optional>

using namespace mlir;

namespace ds::import {
namespace {

using Input = onnx::ValueInfoProto;

const auto &dimsOf(const Input &input) { return input.type().tensor_type().shape().dim(); }

std::set<std::string> dimNames(const Input &input) {
  std::set<std::string> names;
  for (const auto &dim : dimsOf(input))
    collectDimNames(dim.dim_param(), names);
  return names;
}

/// Of a dimension that is no symbol; some exporters write "8".
std::optional<int64_t> fixedSize(const auto &dim) {
  std::set<std::string> names;
  collectDimNames(dim.dim_param(), names);
  if (dim.has_dim_value())
    return dim.dim_value();
  return !names.empty() ? std::nullopt : std::optional(evaluateDim(dim.dim_param(), {}, "an input"));
}

/// "'a', 'b'"; of many the first, the last and their number.
std::string quoted(const auto &names) {
  constexpr size_t most = 4;
  const std::vector<std::string> all(names.begin(), names.end());
  if (all.size() > most)
    return "'" + all.front() + "' to '" + all.back() + "' (" + std::to_string(all.size()) + ")";
  std::string list;
  for (const std::string &name : all)
    list += (list.empty() ? "'" : ", '") + name + "'";
  return list;
}

/// "[batch, 4, past, 8]"
std::string shapeText(const Input &input) {
  std::string text;
  for (const auto &dim : dimsOf(input))
    text += (text.empty() ? "" : ", ") + (dim.has_dim_value() ? std::to_string(dim.dim_value()) : dim.dim_param());
  return "[" + text + "]";
}

[[noreturn]] void refusePast(const Input &input, const std::string &why) {
  throw Failure("input '" + input.name() + "' " + shapeText(input) +
                " holds keys and values of earlier tokens, which training does not have, and " + why +
                "; export the model with use_cache=False, and without past_key_values among its example inputs" +
                saysMore("past-keys"));
}

} // namespace

/// What all symbolic dimensions are, and which inputs are cut off.
void GraphImporter::bindDims(const std::set<std::string> &needed, const std::vector<std::string> &results) {
  if (options_.parameters) // whatever the batch is
    dims_.try_emplace("batch", 2);
  checkConstants();
  if (options_.results == ImportOptions::Results::Loss)
    cutPast(needed, results);
  bindBatch(needed);
  checkDims(needed);
  checkBatch();
}

bool GraphImporter::isLeftOut(const Input &input) const { return variables_.contains(input.name()); }

bool GraphImporter::isData(const Input &input) const {
  return !isLeftOut(input) && !past_.count(input.name()) && !isConstant(input);
}

void GraphImporter::checkConstants() const {
  for (const auto &[name, number] : options_.constants)
    if (std::ranges::none_of(model_.proto.graph().input(), [&](const Input &input) { return input.name() == name; }))
      throw Failure("--constant " + name + ": the model has no input of this name; its inputs are " +
                    describeValues(model_.proto.graph().input()));
}

//===-- keys and values of earlier tokens -------------------------------------===//

/// By their names (isCacheName). Each that the loss reads has one symbolic dimension that counts its tokens, which is
/// 0.
void GraphImporter::cutPast(const std::set<std::string> &needed, const std::vector<std::string> &results) {
  const onnx::GraphProto &graph = model_.proto.graph();
  std::vector<std::string> inputs, outputs;
  std::set<std::string> lengths;
  for (const Input &input : graph.input())
    if (!isLeftOut(input) && isCacheName(input.name())) {
      past_.insert(input.name());
      inputs.push_back(input.name());
      if (needed.count(input.name()))
        lengths.insert(pastLength(input));
    }
  for (const Input &output : graph.output())
    if (isCacheName(output.name()) && std::ranges::find(results, output.name()) == results.end())
      outputs.push_back(output.name());
  for (const std::string &length : lengths) {
    if (dims_.count(length))
      throw Failure(
          "--dim " + length + "=" + std::to_string(dims_.at(length)) + ": '" + length +
          "' counts the earlier tokens whose keys and values are inputs, and training has none; leave it out");
    dims_[length] = 0;
  }
  if (inputs.empty() && outputs.empty())
    return;
  std::string what;
  if (!inputs.empty())
    what = "inputs " + quoted(inputs) + (lengths.empty() ? "" : ", of which " + quoted(lengths) + " is 0");
  if (!outputs.empty())
    what += (what.empty() ? "" : "; ") + ("outputs " + quoted(outputs));
  emitRemark(NameLoc::get(StringAttr::get(&context_, options_.path)))
      << "keys and values of earlier tokens, which only generation has, are cut off: " << what;
}

/// The dimension of a past key or value that counts tokens: of its symbolic ones behind the batch the only one.
std::string GraphImporter::pastLength(const Input &input) const {
  std::string length;
  for (int i = 1; i < dimsOf(input).size(); ++i) {
    const auto &dim = dimsOf(input)[i];
    std::set<std::string> names;
    collectDimNames(dim.dim_param(), names);
    if (fixedSize(dim) || dim.dim_param() == length)
      continue;
    if (!length.empty() || names != std::set{dim.dim_param()})
      refusePast(input, "nothing says which of its dimensions counts them");
    length = dim.dim_param();
  }
  if (length.empty())
    refusePast(input, "has a fixed number of them");
  for (const Input &other : model_.proto.graph().input())
    for (const auto &dim : dimsOf(other))
      if (!isLeftOut(other) && !isCacheName(other.name()) && dim.dim_param() == length)
        refusePast(input, "as many of them as input '" + other.name() + "' has tokens");
  return length;
}

//===-- the batch -------------------------------------------------------------===//

/// What exporters call dimension 0 of the inputs where none has a dimension "batch": one name, or several of which none
/// stands anywhere else, for then it could also count tokens. Empty where dimension 0 of an input has no name.
std::set<std::string> GraphImporter::batchNames(const std::set<std::string> &needed) const {
  std::set<std::string> first, others, within;
  for (const Input &input : model_.proto.graph().input()) {
    if (isData(input) && dimNames(input).count("batch"))
      return {};
    if (isLeftOut(input) || isConstant(input) || !needed.count(input.name()))
      continue;
    first.insert(dimsOf(input).empty() ? "" : dimsOf(input)[0].dim_param());
    for (int i = 1; i < dimsOf(input).size(); ++i)
      collectDimNames(dimsOf(input)[i].dim_param(), others);
  }
  for (const std::string &name : first)
    collectDimNames(name, within);
  const bool isApart = std::ranges::none_of(first, [&](const std::string &name) { return others.count(name) != 0; });
  return within == first && (first.size() == 1 || isApart) ? first : std::set<std::string>();
}

void GraphImporter::bindBatch(const std::set<std::string> &needed) {
  const auto batch = dims_.find("batch");
  if (batch == dims_.end())
    return;
  std::set<std::string> bound;
  for (const std::string &name : batchNames(needed)) {
    const auto [given, isNew] = dims_.try_emplace(name, batch->second);
    if (given->second != batch->second)
      throw Failure("--dim " + name + "=" + std::to_string(given->second) + ": '" + name +
                    "' is dimension 0 of an input, which is the micro-batch, and that has " +
                    std::to_string(batch->second) + " samples; leave --dim " + name + " out");
    if (isNew)
      bound.insert(name);
  }
  if (!bound.empty())
    emitRemark(NameLoc::get(StringAttr::get(&context_, options_.path)))
        << quoted(bound) << (bound.size() == 1 ? " is" : " are") << " dimension 0 of the inputs, so the micro-batch, "
        << batch->second;
}

void GraphImporter::refuseFixedBatch(const Input &input, int64_t fixed, const std::string &symbolic,
                                     const std::string &why) const {
  throw Failure("input '" + input.name() + "' has a first dimension fixed at " + std::to_string(fixed) + ", but " +
                (symbolic.empty() ? "the micro-batch" : "'batch', which input '" + symbolic + "' has,") + " is " +
                std::to_string(dims_.at("batch")) + (why.empty() ? "" : ", and " + why) +
                "; export with an example batch of 2 or more and dynamic_shapes that call dimension 0 of every input "
                "'batch' (torch.export fixes an example batch of 1 silently)" +
                saysMore("fixed-batch"));
}

/// torch.export fixes an example batch of 1 without a word. A file is static on purpose where the sizes agree.
void GraphImporter::checkBatch() const {
  const auto &inputs = model_.proto.graph().input();
  const auto batch = dims_.find("batch");
  std::string symbolic; // an input with a symbolic batch
  for (const Input &input : inputs)
    if (isData(input) && dimNames(input).count("batch"))
      symbolic = input.name();
  for (const Input &input : inputs) {
    if (!isData(input) || dimsOf(input).empty() || batch == dims_.end() || options_.parameters || asWritten_)
      continue;
    const std::optional<int64_t> fixed = fixedSize(dimsOf(input)[0]);
    const std::string &name = dimsOf(input)[0].dim_param();
    if (const auto given = dims_.find(name); given != dims_.end() && given->second != batch->second)
      throw Failure("--dim " + name + "=" + std::to_string(given->second) + ": '" + name +
                    "' is dimension 0 of input '" + input.name() + "', which is the micro-batch, and that has " +
                    std::to_string(batch->second) + " samples; give --dim " + name + "=" +
                    std::to_string(batch->second));
    if (!fixed || *fixed == batch->second)
      continue;
    if (dimNames(input).count("batch"))
      throw Failure("input '" + input.name() + "' " + shapeText(input) +
                    " has the batch behind its first dimension, and samples of data stand first; if it is a state that "
                    "a stream begins with, --constant " +
                    input.name() + "=0 makes it zeros");
    refuseFixedBatch(input, *fixed, symbolic, "");
  }
}

//===-- a batch fixed at 1 ----------------------------------------------------===//

OwningOpRef<ModuleOp> GraphImporter::runOpened(const Shapes &asWritten) {
  asWritten_ = &asWritten;
  const Input *first = nullptr;
  for (const Input &input : model_.proto.graph().input())
    if (!first && isData(input))
      first = &input;
  try {
    OwningOpRef<ModuleOp> module = run();
    emitRemark(NameLoc::get(StringAttr::get(&context_, options_.path)))
        << "the first dimension of its inputs, which the file fixes at 1, is the micro-batch, " << dims_.at("batch");
    return module;
  } catch (const Failure &failure) {
    if (std::string_view(failure.what()).starts_with("the loss " + loss_.file)) // which another example mends
      throw;
    refuseFixedBatch(*first, 1, "", std::string("it cannot be opened: ") + failure.what());
  }
}

bool GraphImporter::fixesBatchAtOne() const {
  const auto batch = dims_.find("batch");
  if (batch == dims_.end() || batch->second < 2 || options_.parameters)
    return false;
  bool any = false;
  std::set<std::string> read; // by the model, rather than by a loss that was joined to it
  for (const FlatNode &node : graph_.nodes)
    if (!loss_.has(node.proto->name()))
      read.insert(node.proto->input().begin(), node.proto->input().end());
  for (const Input &input : model_.proto.graph().input()) {
    if (!isData(input) || !read.count(input.name()))
      continue;
    if (!input.type().tensor_type().has_shape() || dimsOf(input).empty() || fixedSize(dimsOf(input)[0]) != 1)
      return false;
    any = true;
  }
  return any;
}

/// Which dimension of a value holds the samples: the one that has grown.
std::optional<size_t> GraphImporter::batchAxis(const std::string &name) const {
  const auto value = values_.find(name);
  const auto one = asWritten_->find(name);
  if (value == values_.end() || one == asWritten_->end() || !ofData_.count(name))
    return std::nullopt;
  const auto [was, is] = std::ranges::mismatch(one->second, value->second.shape);
  return was == one->second.end() ? std::nullopt : std::optional(size_t(was - one->second.begin()));
}

/// What a node makes of one sample; another branch of an If may make nothing.
const Shape &GraphImporter::shapeOfOne(const std::string &name) const {
  const auto one = asWritten_->find(name);
  if (one == asWritten_->end())
    throw Failure("of one sample the model does not come by here");
  return one->second;
}

/// Row-major order says where the samples go: as many elements lie in front of their dimension as before.
Shape GraphImporter::openedShape(const onnx::NodeProto &node, Shape shape) const {
  const std::optional<size_t> axis = asWritten_ ? batchAxis(node.input(0)) : std::nullopt;
  if (!axis)
    return shape;
  const Shape &from = asWritten_->at(node.input(0));
  Shape to = shapeOfOne(node.output(0));
  const int64_t before = elementCount({from.begin(), from.begin() + std::ptrdiff_t(*axis)});
  int64_t passed = 1;
  for (int64_t &size : to) {
    if (passed == before) {
      size *= dims_.at("batch");
      return to;
    }
    passed *= size;
  }
  throw Failure("in the shape " + toString(to) + " nothing says where the samples go");
}

/// Whether each sample can have its own part of what a node makes, and none of another's. A loss is of them all.
void GraphImporter::checkOpened(const FlatNode &node) {
  if (loss_.has(node.proto->name()))
    return;
  static const std::set<std::string> alongAxis = {"Softmax", "LogSoftmax", "Hardmax", "Concat",
                                                  "Split",   "CumSum",     "TopK"};
  bool isOfData = false;
  for (const std::string &name : node.proto->input()) {
    isOfData |= ofData_.count(name) != 0;
    const std::optional<size_t> axis = alongAxis.count(node.proto->op_type()) ? batchAxis(name) : std::nullopt;
    for (const onnx::AttributeProto &attribute : node.proto->attribute())
      if (axis && attribute.name() == "axis" &&
          (attribute.i() == int64_t(*axis) || attribute.i() == int64_t(*axis) - int64_t(lookup(name).shape.size())))
        throw Failure("it works along the dimension that holds the samples");
  }
  const int64_t samples = dims_.at("batch");
  for (const std::string &name : node.proto->output()) {
    const auto made = values_.find(name);
    if (!isOfData || made == values_.end() || made->second.kind != Value::Kind::Runtime)
      continue;
    ofData_.insert(name);
    const Shape &one = shapeOfOne(name);
    if (elementCount(made->second.shape) != samples * elementCount(one))
      throw Failure("of " + std::to_string(samples) + " samples it makes " + toString(made->second.shape) +
                    ", of one " + toString(one) + ", so that it does not give each its own part");
  }
}

//===-- shapes ----------------------------------------------------------------===//

Shape GraphImporter::inputShape(const Input &input) const {
  const auto &type = input.type().tensor_type();
  if (!input.type().has_tensor_type() || !type.has_shape())
    throw Failure("input '" + input.name() + "' is not a tensor of known rank; export it with a shape");
  Shape shape;
  for (const auto &dim : type.shape().dim())
    shape.push_back(dim.has_dim_value() ? dim.dim_value()
                                        : evaluateDim(dim.dim_param(), dims_, "input '" + input.name() + "'"));
  if (asWritten_ && !shape.empty() && shape[0] == 1)
    shape[0] = dims_.at("batch");
  return shape;
}

/// Every --dim must mean something, and every name must have a size: all that lack one are said at once, except for a
/// single one, which inputShape says.
void GraphImporter::checkDims(const std::set<std::string> &needed) const {
  std::set<std::string> names, lacking;
  for (const Input &input : model_.proto.graph().input())
    for (const std::string &name : dimNames(input)) {
      names.insert(name);
      if (!isLeftOut(input) && needed.count(input.name()) && !dims_.count(name))
        lacking.insert(name);
    }
  for (const auto &[name, size] : options_.dims) {
    if (size < 1)
      throw Failure("--dim " + name + "=" + std::to_string(size) + ": a dimension is at least 1");
    if (name == "batch" || names.count(name))
      continue;
    std::string list;
    for (const std::string &each : names)
      list += (list.empty() ? "'" : ", '") + each + "'";
    throw Failure("--dim " + name + ": no input of the model has a dimension of this name; " +
                  (list.empty() ? "all are fixed" : "there are " + list));
  }
  if (lacking.size() < 2)
    return;
  std::string flags;
  for (const std::string &name : lacking)
    flags += " --dim " + name + "=N";
  throw Failure("dimensions " + quoted(lacking) + " of its inputs have no size; add" + flags);
}

} // namespace ds::import
