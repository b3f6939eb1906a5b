//===- Variables.cpp - the parameters and buffers of a model -----------------===//
#include "compiler/import/Variables.h"

#include "compiler/import/files/Failure.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/Regex.h"

#include <algorithm>
#include <array>
#include <cmath>

using namespace mlir;

namespace ds::import {

/// Elements up to which a buffer that is not trained is folded.
static constexpr int64_t maxFoldedBuffer = 65536;

DType Variable::dtype() const {
  if (std::optional<DType> dtype = foldable ? knownTypeFromOnnx(onnxType) : dtypeFromOnnx(onnxType))
    return *dtype;
  const std::optional<DType> known = knownTypeFromOnnx(onnxType);
  throw Failure("initializer '" + name + "' is " + onnxTypeName(onnxType) +
                "; float32 and float64 parameters, and int32, int64 and bool buffers are supported" +
                (onnxType == 10 || onnxType == 16
                     ? "; export the model in float32 (module.float()), give half weights by "
                       "--weights FOLDER, and compute in bfloat16 by \"bf16\": {\"enabled\": "
                       "true} in the configuration"
                 : onnxType == 3 // int8
                     ? "; a file of whole numbers (quantized) has no gradients; give the float32 one that it was made "
                       "of"
                     : known ? "; a buffer of 65,536 elements or fewer that is not saved may be " +
                                   onnxTypeName(onnxType) + " (register_buffer(..., persistent=False))"
                             : ""));
}

/// What a training step adds has names like w::exp_avg and optimizer::step, and files of weights keep notes
/// under one, too.
static void requireFreeNames(const std::deque<Variable> &variables) {
  std::set<std::string> names = {"optimizer"};
  for (const Variable &variable : variables)
    names.insert(variable.name);
  for (const Variable &variable : variables) {
    const std::string &name = variable.name;
    if (name == safetensorsNotes)
      throw Failure("initializer '" + name + "' has the name under which safetensors files keep notes; rename it");
    if (const size_t end = name.rfind("::"); end != std::string::npos && names.count(name.substr(0, end)))
      throw Failure("initializer '" + name +
                    "' has a name that the training step needs for itself; rename it without '::'");
  }
}

Variables::Variables(const ScannedModel &model, const Metadata &metadata, const TrainingAlgorithm &algorithm,
                     const ImportOptions &options, WeightFiles &files, const std::set<std::string> &outside,
                     const std::set<std::string> &differentiated, const std::map<std::string, Role> &roles)
    : model_(model), metadata_(metadata), algorithm_(algorithm), files_(files), roles_(roles),
      weights_(options.weights) {
  addInitializers(model);
  addLeftOut(model.proto.graph());
  addOutside(outside);
  requireFreeNames(variables_);
  for (Variable &variable : variables_) {
    classify(variable);
    if (algorithm.present)
      classifyByAlgorithm(variable);
  }
  applyRegexes(options);
  findNames();
  for (Variable &variable : variables_) {
    names_.insert(variable.name);
    variable.carried = metadata.state.count(variable.name) != 0;
    if (variable.carried && variable.trainable)
      throw Failure("forward changes '" + variable.name +
                    "' (deepstatic.state), and it is to be trained, too; a tensor is either state or trained");
    const std::optional<int64_t> elements = checkedElementCount(variable.shape);
    const bool fixed = !variable.carried && !variable.trainable && !variable.parameter && !variable.persistent &&
                       !variable.optimizer && !algorithm.drawn.count(variable.name) &&
                       !differentiated.count(variable.name);
    if (fixed && elements && *elements <= maxFoldedBuffer)
      variable.foldable = true;
  }
}

void Variables::addInitializers(const ScannedModel &model) {
  const auto &initializers = model.proto.graph().initializer();
  for (int i = 0; i < initializers.size(); ++i) {
    const onnx::TensorProto &tensor = initializers[i];
    Variable &variable = variables_.emplace_back();
    variable.name = tensor.name();
    variable.onnxType = tensor.data_type();
    variable.shape = {tensor.dims().begin(), tensor.dims().end()};
    variable.tensor = &tensor;
    variable.inlined = model.data[size_t(i)];
  }
}

/// Graph inputs of kind PARAMETER or BUFFER are initializers that the exporter left out.
void Variables::addLeftOut(const onnx::GraphProto &graph) {
  std::set<std::string> present;
  for (const Variable &variable : variables_)
    present.insert(variable.name);
  for (const onnx::ValueInfoProto &input : graph.input()) {
    auto note = metadata_.values.find(input.name());
    if (present.count(input.name()) || note == metadata_.values.end() ||
        (note->second.kind != "PARAMETER" && note->second.kind != "BUFFER"))
      continue;
    Variable &variable = variables_.emplace_back();
    variable.name = input.name();
    variable.onnxType = input.type().tensor_type().elem_type();
    for (const auto &dim : input.type().tensor_type().shape().dim()) {
      if (!dim.has_dim_value())
        throw Failure("parameter '" + input.name() + "' has a symbolic dimension; parameters have fixed shapes");
      variable.shape.push_back(dim.dim_value());
    }
  }
}

void Variables::addOutside(const std::set<std::string> &outside) {
  const auto tensors = files_.safetensors();
  for (const std::string &name : outside) {
    Variable &variable = variables_.emplace_back();
    variable.name = name;
    std::tie(variable.onnxType, variable.shape) = tensors.at(name);
  }
}

/// PyTorch's names have dots: "h.0.attn.weight". For what a file does not say, and what stands in no file.
static bool looksTrained(const Variable &variable) {
  const std::string &name = variable.name;
  return name.find('.') != std::string::npos && !name.ends_with(".running_mean") && !name.ends_with(".running_var") &&
         !name.ends_with(".num_batches_tracked");
}

void Variables::classify(Variable &variable) {
  const std::optional<DType> dtype = knownTypeFromOnnx(variable.onnxType);
  const bool isFloat = !dtype || ds::isFloat(*dtype);
  auto note = metadata_.values.find(variable.name);
  if (note != metadata_.values.end())
    variable.parameter = note->second.kind == "PARAMETER";
  else if (metadata_.trainable && metadata_.trainable->count(variable.name))
    variable.parameter = true;
  else if (const auto role = roles_.find(variable.name); role != roles_.end())
    variable.parameter = role->second.learned;
  else
    variable.parameter = looksTrained(variable) && !model_.constants.count(variable.name);
  variable.parameter &= isFloat;
  variable.trainable = variable.parameter && (!metadata_.trainable || metadata_.trainable->count(variable.name) != 0);
  variable.persistent = variable.parameter || (note != metadata_.values.end() && note->second.persistent);
}

void Variables::classifyByAlgorithm(Variable &variable) {
  const bool updated = algorithm_.updatesVariable(variable.name);
  const std::optional<DType> dtype = dtypeFromOnnx(variable.onnxType);
  variable.trainable = updated && dtype && ds::isFloat(*dtype) && algorithm_.readForward.count(variable.name);
  variable.parameter = variable.trainable || (variable.parameter && !updated);
  variable.persistent |= variable.parameter;
  variable.optimizer = updated && !variable.parameter;
}

std::string Variables::table(const std::set<std::string> &used) const {
  std::vector<std::array<std::string, 5>> rows = {{"name", "shape", "from", "trained", "why"}};
  for (const Variable &variable : variables_) {
    const std::optional<DType> dtype = knownTypeFromOnnx(variable.onnxType);
    if (!dtype || !ds::isFloat(*dtype))
      continue;
    const auto role = roles_.find(variable.name);
    rows.push_back({variable.name, toString(variable.shape),
                    model_.merged.count(variable.name)      ? "merged"
                    : model_.constants.count(variable.name) ? "constant"
                    : variable.name.starts_with("onnx::")   ? "folded"
                    : variable.tensor                       ? "initializer"
                                                            : "left out",
                    variable.trainable ? "yes" : "no",
                    decided_.count(variable.name) ? "--trainable or --frozen"
                    : !used.count(variable.name)  ? "not read, or folded"
                    : role != roles_.end()        ? role->second.use
                    : algorithm_.present          ? "training_info"
                                                  : "the file says so"});
  }
  std::array<size_t, 5> widths{};
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      text += row[i] + (i + 1 < row.size() ? std::string(widths[i] - row[i].size() + 2, ' ') : "\n");
  return text;
}

std::string Variables::whatCouldTrain() const {
  constexpr size_t most = 20;
  std::string pattern;
  size_t count = 0;
  for (const Variable &variable : variables_)
    if (const auto dtype = dtypeFromOnnx(variable.onnxType); dtype && ds::isFloat(*dtype) && !variable.shape.empty()) {
      pattern += (count == 0 ? "" : "|") + llvm::Regex::escape(variable.name);
      ++count;
    }
  return count == 0 || count > most ? "" : "; there are --trainable '^(" + pattern + ")$'";
}

void Variables::applyRegexes(const ImportOptions &options) {
  auto apply = [&](const std::string &pattern, bool trained) {
    const std::string flag = trained ? "--trainable" : "--frozen";
    llvm::Regex regex(pattern);
    std::string error;
    if (!regex.isValid(error))
      throw Failure(flag + " '" + pattern + "' is no regular expression: " + error);
    bool matched = false;
    for (Variable &variable : variables_) {
      const std::optional<DType> dtype = dtypeFromOnnx(variable.onnxType);
      if (!dtype || !ds::isFloat(*dtype) || !regex.match(variable.name))
        continue;
      matched = true;
      decided_.insert(variable.name);
      variable.trainable = trained;
      variable.parameter |= trained;
      variable.persistent |= trained;
    }
    if (!matched)
      throw Failure(flag + " '" + pattern + "' matches no float initializer of the model");
  };
  for (const std::string &pattern : options.trainable)
    apply(pattern, true);
  for (const std::string &pattern : options.frozen)
    apply(pattern, false);
}

void Variables::checkNotMerged() const {
  std::vector<std::string> merged;
  for (const Variable &variable : variables_)
    if (const auto role = roles_.find(variable.name);
        role != roles_.end() && role->second.maybeMerged && variable.trainable && !decided_.count(variable.name))
      merged.push_back("'" + variable.name + "'");
  if (!merged.empty())
    throw Failure(std::to_string(merged.size()) +
                  " initializers hold one number throughout, and several nodes read each: " + firstNames(merged) +
                  "; where a tool stored equal parameters once, as onnxsim and onnxscript do, nothing says " +
                  "which they were, and they would be trained as one: give the file as it was before that, or say " +
                  "--trainable REGEX to train each as one, or --frozen REGEX");
}

std::vector<std::string> Variables::namesOf(const Variable &variable) const {
  std::vector<std::string> names = {variable.name};
  if (auto tied = metadata_.aliases.find(variable.name); tied != metadata_.aliases.end())
    names.insert(names.end(), tied->second.begin(), tied->second.end());
  return names;
}

/// How the names in --weights differ from the model's.
void Variables::findNames() {
  std::vector<std::vector<std::string>> parameters;
  for (const Variable &variable : variables_)
    if (variable.parameter)
      parameters.push_back(namesOf(variable));
  rule_ = findPrefixRule(parameters, [&](const std::string &name) { return files_.hasTensor(name); });
}

/// Empty: --weights has no such tensor. What the model has itself and nobody saves as a weight stays the model's.
std::string Variables::nameInWeights(const Variable &variable) const {
  if (variable.tensor && !variable.parameter && !variable.persistent)
    return "";
  return nameInFile(namesOf(variable), rule_, [&](const std::string &name) { return files_.hasTensor(name); });
}

void Variables::locate(Variable &variable) {
  if (variable.data || algorithm_.drawn.count(variable.name))
    return;
  const DType dtype = variable.dtype();
  checkedElements(variable.shape, dtype, "parameter '" + variable.name + "'");
  if (const std::string name = nameInWeights(variable); !name.empty())
    variable.data = files_.locateInSafetensors(name, variable.name, dtype, variable.shape);
  else if (variable.tensor)
    variable.data = files_.locate(*variable.tensor, variable.inlined, dtype, "initializer '" + variable.name + "'");
  else if (!weights_.empty())
    refuseMissing();
}

/// Parameters that are nowhere.
void Variables::refuseMissing() const {
  std::vector<std::string> missing;
  for (const Variable &variable : variables_)
    if (!variable.tensor && nameInWeights(variable).empty() && !algorithm_.drawn.count(variable.name))
      missing.push_back("'" + variable.name + "'");
  const bool areExperts =
      llvm::all_of(missing, [](const std::string &name) { return name.find(".experts.") != std::string::npos; });
  throw Failure(
      (missing.size() == 1 ? "parameter " + missing[0] + " is" : std::to_string(missing.size()) + " parameters are") +
      " neither in the model nor in the file that --weights names" +
      (missing.size() == 1 ? "" : ": " + firstNames(missing)) +
      (areExperts
           ? "; a folder has the matrices of each expert apart, which models/export.py joins where it is not given "
             "--no-weights"
           : "; names must be the same but for a prefix such as model. or module."));
}

/// Names that differ in a number alone, as those of layers do, once: "h.*.attn.weight".
static std::string patternsOf(const std::vector<std::string> &names) {
  constexpr size_t most = 40;
  std::vector<std::string> patterns;
  for (const std::string &name : names) {
    std::string pattern;
    for (llvm::StringRef rest = name; !rest.empty();) {
      const auto [part, others] = rest.split('.');
      pattern += (pattern.empty() ? "" : ".") +
                 (part.find_first_not_of("0123456789") == llvm::StringRef::npos ? "*" : part.str());
      rest = others;
    }
    if (!llvm::is_contained(patterns, pattern))
      patterns.push_back(pattern);
  }
  std::string text;
  for (size_t i = 0; i < std::min(patterns.size(), most); ++i)
    text += (i > 0 ? ", " : "") + patterns[i];
  return text + (patterns.size() > most ? " and " + std::to_string(patterns.size() - most) + " more" : "");
}

/// Which initializers are trained and which are not, where their names decided.
static std::string guess(const std::deque<Variable> &variables) {
  const llvm::Regex ownable("^[A-Za-z_][A-Za-z0-9_.]*$"); // of what does not train, not "/h/Constant_output_0"
  std::vector<std::string> trained, fixed;
  for (const Variable &variable : variables) {
    const std::optional<DType> dtype = dtypeFromOnnx(variable.onnxType);
    if (dtype && ds::isFloat(*dtype) && (variable.trainable || ownable.match(variable.name)))
      (variable.trainable ? trained : fixed).push_back(variable.name);
  }
  if (trained.empty() && fixed.empty())
    return "";
  return "the file does not say which initializers are parameters, so what products, norms and sums with activations "
         "learn is trained: " +
         (trained.empty() ? "none" : patternsOf(trained)) +
         (fixed.empty() ? "" : "; and these are not: " + patternsOf(fixed)) +
         "; --trainable REGEX and --frozen REGEX say otherwise, and ds-opt import MODEL --parameters says why";
}

std::vector<std::string> Variables::weightNotes(bool trains) const {
  std::vector<std::string> absent, notes;
  if (const std::string sentence = trains && !roles_.empty() ? guess(variables_) : ""; !sentence.empty())
    notes.push_back(sentence);
  if (weights_.empty())
    return notes;
  std::map<std::string, size_t> widened; // by dtype
  size_t parameters = 0;
  for (const Variable &variable : variables_) {
    if (!variable.parameter || !variable.data)
      continue;
    ++parameters;
    if (!variable.data->dtype.empty())
      ++widened[variable.data->dtype];
    if (nameInWeights(variable).empty())
      absent.push_back(variable.name);
  }
  if (parameters > 0 && absent.size() == parameters)
    throw Failure("'" + weights_ + "' has none of the model's " + std::to_string(parameters) + " parameters: " +
                  firstNames(absent) + "; names must be the same but for a prefix such as model. or module.");
  for (const auto &[dtype, count] : widened)
    notes.push_back(std::to_string(count) + " of " + std::to_string(parameters) + " parameters are " +
                    (dtype == "BF16"  ? "bfloat16"
                     : dtype == "F16" ? "float16"
                                      : "float32") +
                    " in " + weights_ + "; what is trained is widened to " + (dtype == "F32" ? "float64" : "float32"));
  if (!rule_.prefix.empty())
    notes.push_back(rule_.sentence(weights_));
  if (!absent.empty())
    notes.push_back(std::to_string(absent.size()) + " of " + std::to_string(parameters) + " parameters are not in " +
                    weights_ + " and keep the model's values: " + firstNames(absent));
  return notes;
}

const Constant &Variables::constant(Variable &variable) {
  if (!variable.constant) {
    locate(variable);
    if (!variable.data)
      throw Failure("the value of '" + variable.name +
                    "' is needed to compile, but the model leaves it out; give "
                    "--weights F.safetensors");
    std::vector<char> bytes = files_.read(*variable.data, variable.dtype());
    if (variable.dtype() == DType::Bool)
      for (char &byte : bytes)
        byte = byte != 0;
    variable.constant = Constant::dense(variable.dtype(), variable.shape, std::move(bytes));
  }
  return *variable.constant;
}

static Attribute initialSource(MLIRContext *context, const InitialValue &initial) {
  Builder builder(context);
  auto number = [&](double value) { return builder.getF64FloatAttr(value); };
  switch (initial.rule) {
  case InitialValue::Rule::Zeros:
    return train::FillSourceAttr::get(context, number(0));
  case InitialValue::Rule::Ones:
    return train::FillSourceAttr::get(context, number(1));
  case InitialValue::Rule::Constant:
    return train::FillSourceAttr::get(context, number(initial.mean));
  case InitialValue::Rule::Normal:
    return train::RandomSourceAttr::get(context, "normal", number(initial.mean), number(initial.deviation));
  case InitialValue::Rule::Uniform: // its half width is sqrt(3) standard deviations
    return train::RandomSourceAttr::get(context, "uniform", number(initial.mean),
                                        number(std::sqrt(3.0) * initial.deviation));
  }
  return {};
}

Attribute Variables::source(MLIRContext *context, Variable &variable) {
  locate(variable);
  if (auto drawn = algorithm_.drawn.find(variable.name); drawn != algorithm_.drawn.end())
    return initialSource(context, drawn->second);
  if (!variable.data) {
    auto initial = metadata_.initial.find(variable.name);
    if (initial != metadata_.initial.end())
      return initialSource(context, initial->second);
    return train::MissingSourceAttr::get(context, "the model file leaves it out and has no rule for it");
  }
  if (!variable.data->path.empty())
    return train::FileSourceAttr::get(context, variable.data->path, int64_t(variable.data->offset),
                                      int64_t(variable.data->length), variable.data->dtype);
  constexpr int64_t maxLiteral = 1 << 20; // elements
  if (elementCount(variable.shape) > maxLiteral)
    throw Failure("initializer '" + variable.name + "' has " + std::to_string(elementCount(variable.shape)) +
                  " elements that are not stored as one run of bytes; store them as raw_data or external data");
  // A bool's elements are whole bytes here, bits there.
  const RankedTensorType type = tensorType(context, variable.dtype(), variable.shape);
  const std::vector<char> &bytes = variable.data->literal;
  if (variable.dtype() == DType::Bool)
    return train::LiteralSourceAttr::get(
        context,
        DenseElementsAttr::get(type, ArrayRef<bool>(reinterpret_cast<const bool *>(bytes.data()), bytes.size())));
  return train::LiteralSourceAttr::get(context, DenseElementsAttr::getFromRawBuffer(type, bytes));
}

} // namespace ds::import
