//===- Roles.cpp - what an initializer is for, by its use ---------------------===//
//
//   w -> Transpose -> MatMul(x, .)      w is a factor: learned
//   g -> Mul(., v) -> Conv(x, .)        g and v are kernels: learned
//   s -> Resize(x, ., s)                s is a scale of an operator: not learned
//   f -> Mul(positions, f) -> Cos       f makes a table of sines: not learned
//
// One walk in program order. Of each value it is known which initializers it was computed from, if from nothing else,
// and else what kind of data it is.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Roles.h"

#include "compiler/import/Types.h"
#include "compiler/import/files/Failure.h"
#include "core/DType.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace ds::import {
namespace {

/// What a value is.
enum class Kind {
  Fixed,      ///< computed from initializers and constants alone
  Counts,     ///< positions, indices and masks: integers of the data, and what is computed of them element by element
  Raw,        ///< numbers of the data before any product, which preprocessing shifts and scales
  Activation, ///< all else
};

struct Known {
  Kind kind = Kind::Activation;
  std::set<std::string> sources; // of what is fixed: float initializers
};

template <size_t N> bool isOneOf(std::string_view word, const std::array<std::string_view, N> &words) {
  return std::ranges::find(words, word) != words.end();
}

constexpr std::array<std::string_view, 6> sums = {"Add", "Sub", "Mul", "Div", "Sum", "Where"};
constexpr std::array<std::string_view, 11> movements = {"Identity", "Transpose", "Reshape", "Flatten",
                                                        "Squeeze",  "Unsqueeze", "Expand",  "Slice",
                                                        "Split",    "Cast",      "Concat"};

/// What they make has nothing of the numbers that they read.
constexpr std::array<std::string_view, 5> without = {"Shape", "Size", "Range", "ConstantOfShape", "Constant"};
/// Their first operand is what they move; the others say where.
constexpr std::array<std::string_view, 5> shaped = {"Expand", "Reshape", "Tile", "Slice", "Squeeze"};

/// How an operator calls an operand that it learns; empty: it wants it constant.
std::string_view learnedAs(std::string_view op, int index) {
  if (op == "MatMul" || op == "Einsum" || (op == "Gemm" && index < 2))
    return "factor";
  if (op == "Conv" || op == "ConvTranspose")
    return index == 1 ? "kernel" : index == 2 ? "bias" : "";
  if (op == "Gemm")
    return "bias";
  if (op == "LSTM" || op == "GRU" || op == "RNN")
    return index == 1 || index == 2 ? "weights" : index == 3 ? "bias" : index == 7 ? "peepholes" : "";
  if (op == "LayerNormalization" || op == "RMSNormalization" || op == "InstanceNormalization" ||
      op == "GroupNormalization" || op == "BatchNormalization")
    return index == 1 ? "scale" : index == 2 ? "shift" : "";
  if (op == "PRelu")
    return index == 1 ? "slope" : "";
  if (op == "Gather" || op == "GatherND" || op == "GatherElements")
    return index == 0 ? "table" : "";
  if (op == "Mul" || op == "Div")
    return "factor";
  if (op == "Add" || op == "Sub" || op == "Sum")
    return "term";
  if ((op == "Where" && index > 0) || op == "Concat")
    return "part";
  return "";
}

/// Whether an operator wants an operand constant that a module may have as a buffer.
bool wantsConstant(std::string_view op, int index) {
  static constexpr std::array<std::string_view, 15> parameters = {
      "Resize", "Upsample", "Pad",   "Clip",    "Slice",          "Tile",        "Reshape", "Expand",
      "TopK",   "Dropout",  "Equal", "Greater", "GreaterOrEqual", "LessOrEqual", "Less"};
  return (index > 0 && isOneOf(op, parameters)) || op == "Range" || (op == "BatchNormalization" && index > 2) ||
         ((op == "SoftmaxCrossEntropyLoss" || op == "NegativeLogLikelihoodLoss") && index == 2);
}

class Walk {
public:
  Walk(const ScannedModel &model, WeightFiles &files, bool namedByModule, bool constantsLearn)
      : model_(model), files_(files), namedByModule_(namedByModule), constantsLearn_(constantsLearn) {
    const onnx::GraphProto &graph = model.proto.graph();
    for (int i = 0; i < graph.initializer_size(); ++i) {
      const onnx::TensorProto &tensor = graph.initializer(i);
      const std::optional<DType> dtype = knownTypeFromOnnx(tensor.data_type());
      numbers_[tensor.name()] = i;
      known_[tensor.name()] = {Kind::Fixed, {}};
      if (dtype && ds::isFloat(*dtype)) {
        known_[tensor.name()].sources = {tensor.name()};
        roles_[tensor.name()];
      }
    }
    for (const onnx::ValueInfoProto &input : graph.input())
      if (!numbers_.contains(input.name())) {
        const std::optional<DType> dtype = knownTypeFromOnnx(input.type().tensor_type().elem_type());
        known_[input.name()] = {dtype && ds::isFloat(*dtype) ? Kind::Raw : Kind::Counts, {}};
      }
  }

  std::map<std::string, Role> run(const FlatGraph &graph) {
    for (const FlatNode &node : graph.nodes)
      visit(*node.proto, describe(node));
    for (const auto &name : ofSines_)
      roles_[name] = {.use = "makes a table of sines"};
    for (auto &[name, role] : roles_)
      if (role.use.empty() && isOfModule(name))
        role = {.learned = true, .use = "meets no data"};
    findMerged();
    return std::move(roles_);
  }

private:
  void visit(const onnx::NodeProto &node, const std::string &where) {
    Known ofBodies{Kind::Fixed, {}};
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g())
        visitBody(attribute.g(), ofBodies);
    const std::string &op = node.op_type();
    std::optional<Kind> data;
    bool computes = false; // with an operand that is learned
    std::set<std::string> sources;
    const int operands = isOneOf(op, shaped) ? std::min(1, node.input_size()) : node.input_size();
    for (int i = 0; i < operands; ++i) {
      const auto found = known_.find(node.input(i));
      if (found == known_.end() || isOneOf(op, without))
        continue;
      if (found->second.kind == Kind::Fixed)
        sources.insert(found->second.sources.begin(), found->second.sources.end());
      else
        data = std::max(data.value_or(Kind::Counts), found->second.kind);
    }
    if (data)
      for (int i = 0; i < node.input_size(); ++i)
        if (const auto found = known_.find(node.input(i)); found != known_.end() && found->second.kind == Kind::Fixed)
          for (const std::string &name : found->second.sources)
            computes |= meet(name, op, i, *data, where);
    sources.insert(ofBodies.sources.begin(), ofBodies.sources.end());
    const Known result = data                           ? Known{kindOf(op, *data, computes), {}}
                         : ofBodies.kind != Kind::Fixed ? Known{ofBodies.kind, {}}
                                                        : Known{Kind::Fixed, sources};
    if ((op == "Sin" || op == "Cos") && node.input_size() == 1)
      noteSines(node.input(0));
    for (const std::string &output : node.output())
      known_[output] = result;
    if ((op == "MatMul" || op == "Mul") && (data ? *data == Kind::Counts : readsPositions(node)))
      for (const std::string &output : node.output())
        ofCounts_[output] = sources;
    else if (isOneOf(op, movements))
      for (const std::string &input : node.input())
        if (const auto found = ofCounts_.find(input); found != ofCounts_.end())
          ofCounts_[node.output(0)] = found->second;
  }

  /// What a body reads from around it keeps its role; what it is given is data. Adds what it makes to `made`.
  void visitBody(const onnx::GraphProto &body, Known &made) {
    for (const onnx::TensorProto &tensor : body.initializer())
      known_[tensor.name()] = {Kind::Fixed, {}};
    for (const onnx::ValueInfoProto &input : body.input())
      known_[input.name()] = {Kind::Activation, {}};
    for (const onnx::NodeProto &node : body.node())
      visit(node, describe(FlatNode{&node, 0, 0}));
    for (const onnx::ValueInfoProto &output : body.output())
      if (const auto found = known_.find(output.name()); found != known_.end()) {
        made.sources.insert(found->second.sources.begin(), found->second.sources.end());
        made.kind = std::max(made.kind, found->second.kind);
      }
  }

  /// Whether an operand is known and made of no weight.
  bool readsPositions(const onnx::NodeProto &node) const {
    return llvm::any_of(node.input(), [&](const std::string &input) {
      const auto found = known_.find(input);
      return found != known_.end() && found->second.kind == Kind::Fixed && found->second.sources.empty();
    });
  }

  /// Frequencies that positions are multiplied with, before their sine is taken.
  void noteSines(const std::string &angle) {
    if (const auto found = ofCounts_.find(angle); found != ofCounts_.end())
      ofSines_.insert(found->second.begin(), found->second.end());
  }

  static Kind kindOf(const std::string &op, Kind data, bool computes) {
    if (computes || data == Kind::Activation)
      return Kind::Activation;
    return isOneOf(op, sums) || isOneOf(op, movements) || data == Kind::Counts ? data : Kind::Activation;
  }

  /// An initializer, or what was computed from it, is operand `index` of an op on data. Returns whether it is learned.
  bool meet(const std::string &name, const std::string &op, int index, Kind data, const std::string &where) {
    const std::string_view as = learnedAs(op, index);
    const bool mayBe = constantsLearn_ || !model_.constants.contains(name);
    const bool learned = mayBe && (as.empty() ? isOfModule(name) && !wantsConstant(op, index)
                                              : isProduct(op, as) || isLearnedTerm(name, op, data));
    Role &role = roles_[name];
    if (role.use.empty() || (learned && !role.learned))
      role.use = (as.empty() ? "operand " + std::to_string(index) : std::string(as)) + " of " + where;
    role.learned |= learned;
    products_[name] += learned && as != "table";
    return learned;
  }

  /// A part that a module calls several times has its factors read as often as its scales. A head that is tied to a
  /// table is one product.
  void findMerged() {
    std::vector<std::string> shared;
    for (const auto &[name, readers] : products_) {
      const int dims = model_.proto.graph().initializer(numbers_.at(name)).dims_size();
      if (readers > 1 && dims > 1)
        return;
      if (readers > 1 && dims == 1)
        shared.push_back(name);
    }
    for (const std::string &name : shared) {
      const std::vector<float> values = valuesOf(model_.proto.graph().initializer(numbers_.at(name)));
      roles_[name].maybeMerged =
          values.size() > 1 && std::ranges::all_of(values, [&](float v) { return v == values[0]; });
    }
  }

  static bool isProduct(const std::string &op, std::string_view as) {
    return !isOneOf(op, sums) && op != "Concat" && !as.empty();
  }

  /// Whether what is added, multiplied or joined with data is learned.
  bool isLearnedTerm(const std::string &name, const std::string &op, Kind data) {
    const onnx::TensorProto &tensor = model_.proto.graph().initializer(numbers_.at(name));
    const bool ofModule = isOfModule(name);
    int64_t elements = 1;
    for (const int64_t dim : tensor.dims())
      elements *= dim;
    const bool isOfActivations = data == Kind::Activation;
    if (elements < (ofModule ? 1 : 2) || (!isOfActivations && !ofModule))
      return false;
    return !isMask(tensor, op, ofModule);
  }

  /// "h.0.attn.scale", whoever wrote the file; not "/h.0/Constant_output_0".
  static bool isPathInModule(const std::string &name) {
    const auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
    return name.find('.') != std::string::npos && std::ranges::all_of(name, isWord);
  }

  bool isOfModule(const std::string &name) const {
    // "/h.0/Constant_output_0", which a tool has folded; in bodies PyTorch keeps numbers so
    const bool isOfNode = name.starts_with("/") || model_.ofBodies.contains(name);
    return ((namedByModule_ && !isOfNode) || isPathInModule(name)) && !model_.constants.contains(name);
  }

  /// By its elements: of two values, one of which excludes or keeps as it is; zeros that are joined; sines.
  bool isMask(const onnx::TensorProto &tensor, const std::string &op, bool ofModule) {
    const std::vector<float> values = valuesOf(tensor);
    if (values.empty())
      return false;
    const auto [least, most] = std::ranges::minmax(values);
    const bool isOfTwo = std::ranges::all_of(values, [&](float v) { return v == least || v == most; });
    if (least < -1e4F || (isOfTwo && least == 0 && most == 1 && values.size() > 1))
      return true;
    return (op == "Concat" && !ofModule && least == 0 && most == 0) ||
           isTableOfSines({tensor.dims().begin(), tensor.dims().end()}, values);
  }

  /// None where they are not float32, or cannot be read, which is said where they are needed.
  std::vector<float> valuesOf(const onnx::TensorProto &tensor) try {
    if (tensor.data_type() != 1)
      return {};
    const auto number = size_t(numbers_.at(tensor.name()));
    const TensorData data =
        files_.locate(tensor, model_.data[number], DType::F32, "initializer '" + tensor.name() + "'");
    const std::vector<char> bytes = files_.read(data, DType::F32);
    std::vector<float> values(bytes.size() / sizeof(float));
    if (!bytes.empty())
      std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  } catch (const Failure &) {
    return {};
  }

  const ScannedModel &model_;
  WeightFiles &files_;
  const bool namedByModule_, constantsLearn_;
  std::map<std::string, int> numbers_; // of initializers
  std::map<std::string, Known> known_;
  std::map<std::string, std::set<std::string>> ofCounts_; // products of positions: what they were multiplied with
  std::set<std::string> ofSines_;
  std::map<std::string, Role> roles_;
  std::map<std::string, int> products_; // nodes that learn it, but for lookups
};

} // namespace

bool isTableOfSines(const Shape &shape, std::span<const float> values) {
  const auto width = size_t(shape.empty() ? 0 : shape.back());
  if (shape.size() < 2 || width < 4 || width % 2 != 0 || values.size() < 2 * width)
    return false;
  for (size_t at = 0; at < values.size(); at += width) {
    double squares = 0;
    for (size_t i = at; i < at + width; ++i)
      squares += double(values[i]) * values[i];
    if (std::abs(squares - double(width) / 2) > 1e-3 * double(width))
      return false;
  }
  return true;
}

std::map<std::string, Role> rolesOf(const ScannedModel &model, const FlatGraph &graph, WeightFiles &files,
                                    bool namedByModule, bool constantsLearn) {
  return Walk(model, files, namedByModule, constantsLearn).run(graph);
}

} // namespace ds::import
