//===- Arguments.cpp - options that several commands of ds-opt have -------===//
#include "tools/ds-opt/Arguments.h"

#include "compiler/sources/AttachedLoss.h"
#include "core/AttachedLoss.h"
#include "core/Error.h"
#include "core/Files.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iomanip>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

namespace ds::tool {
namespace {

/// The sizes of `--dim NAME=SIZE[,SIZE...]`; empty: it is none.
std::vector<int64_t> parseSizes(const std::string &text) {
  std::vector<int64_t> sizes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    int64_t size = 0;
    const auto [last, error] = std::from_chars(text.data() + begin, text.data() + end, size);
    if (error != std::errc() || last != text.data() + end || size < 1)
      return {};
    sizes.push_back(size);
    begin = end + 1;
  }
  return sizes;
}

/// `--dim batch=4`, `--dim seq=128,512` and the like. Several sizes are for a plan, and of one dimension.
struct Dims {
  explicit Dims(const std::vector<std::string> &texts) {
    for (const std::string &text : texts) {
      const size_t equals = text.find('=');
      const std::string name = text.substr(0, equals);
      const std::vector<int64_t> sizes =
          equals == std::string::npos ? std::vector<int64_t>() : parseSizes(text.substr(equals + 1));
      if (name.empty() || sizes.empty())
        throw Error("--dim " + text + " is not NAME=SIZE with a size of at least 1; try --dim seq=128");
      if (sizes.size() == 1)
        each[name] = sizes[0];
      else
        addLengths(text, name, sizes);
    }
    if (each.contains(lengths.dimension))
      throw Error("--dim " + lengths.dimension + " is given twice; give all of its sizes at once");
  }

  std::map<std::string, int64_t> each; // of one size
  driver::Lengths lengths;

private:
  void addLengths(const std::string &text, const std::string &name, const std::vector<int64_t> &sizes) {
    if (name == "batch")
      throw Error("--dim " + text + ": the micro-batch has one size in all steps; give one");
    if (!lengths.sizes.empty())
      throw Error("--dim " + text + ": dimension " + lengths.dimension +
                  " has several sizes, too, and a plan can have them for one; give one of " + name);
    if (!std::ranges::is_sorted(sizes, std::ranges::less_equal()))
      throw Error("--dim " + text + ": sizes are to ascend, each of them once; try --dim " + name + "=128,512");
    lengths = {name, sizes};
  }
};

/// What follows the last "=" of a flag; NaN: it is no finite number.
double numberBehind(const std::string &text, size_t equals) {
  double number = 0;
  const auto [last, error] = std::from_chars(text.data() + equals + 1, text.data() + text.size(), number);
  const bool isNumber = error == std::errc() && last == text.data() + text.size() && std::isfinite(number);
  return isNumber ? number : std::nan("");
}

/// `--constant sr=16000`.
std::map<std::string, double> parseConstants(const std::vector<std::string> &texts) {
  std::map<std::string, double> constants;
  for (const std::string &text : texts) {
    const size_t equals = text.rfind('=');
    const std::string name = text.substr(0, equals);
    const double number = equals == std::string::npos ? std::nan("") : numberBehind(text, equals);
    if (name.empty() || std::isnan(number))
      throw Error("--constant " + text + " is not NAME=NUMBER; try --constant state=0");
    if (!constants.emplace(name, number).second)
      throw Error("--constant " + name + " is given twice; give it once");
  }
  return constants;
}

/// `--loss lm_loss` and `--loss aux_loss=0.01`.
std::vector<std::pair<std::string, double>> parseLosses(const std::vector<std::string> &texts) {
  std::vector<std::pair<std::string, double>> losses;
  for (const std::string &text : texts) {
    const size_t equals = text.rfind('=');
    const std::string name = text.substr(0, equals);
    const double weight = equals == std::string::npos ? 1 : numberBehind(text, equals);
    if (name.empty() || std::isnan(weight))
      throw Error("--loss " + text + " is not NAME or NAME=WEIGHT with a finite weight; try --loss loss=0.5");
    losses.emplace_back(name, weight);
  }
  return losses;
}

/// KIND, KIND:OUTPUT or LOSS.onnx; nothing: neither.
std::optional<AttachedLoss> attachedFrom(const std::string &word) {
  const size_t colon = word.find(':');
  if (const std::optional<LossKind> kind = lossKindFromName(word.substr(0, colon)))
    return AttachedLoss{.kind = *kind, .logits = colon == std::string::npos ? "" : word.substr(colon + 1)};
  const std::string extension = std::filesystem::path(word).extension().string();
  if (extension == ".onnx" || extension == ".textproto" || extension == ".onnxtxt")
    return AttachedLoss{.file = word};
  return std::nullopt;
}

std::string checkAttached(const std::string &word) {
  if (attachedFrom(word))
    return "";
  std::string kinds;
  for (const auto &[name, kind] : lossKinds)
    kinds += std::string(name) + ", ";
  return word + " is no loss: the kinds are " + kinds + "and a file is named LOSS.onnx";
}

/// As deepstatic.loss has it.
std::string jsonOf(const AttachedLoss &loss) {
  std::ostringstream text;
  if (!loss.file.empty())
    text << "{\"file\": " << std::quoted(loss.file) << "}";
  else if (!loss.logits.empty())
    text << "{\"kind\": \"" << name(loss.kind) << "\", \"logits\": " << std::quoted(loss.logits) << "}";
  else
    text << name(loss.kind);
  return text.str();
}

} // namespace

std::vector<NamedPath> filesOfModel(const std::filesystem::path &path) {
  std::vector<NamedPath> files = {{"the model", path}};
  const bool whole = isFolder(path);
  const std::filesystem::path folder = whole ? path : path.has_parent_path() ? path.parent_path() : ".";
  if (isFolder(folder))
    for (const std::filesystem::path &file : listFolder(folder)) {
      const std::string name = file.filename();
      if (whole ? name.find(".onnx") != std::string::npos : name.starts_with(path.filename().string() + "."))
        files.push_back({"the model's file", file});
    }
  return files;
}

void ModelArguments::add(CLI::App &app) {
  app.add_option("MODEL", path, "MODEL.onnx, or the folder that models/export.py wrote")->required();
  app.add_option("--dim", dims,
                 "NAME=SIZE of a symbolic dimension; batch is the micro-batch; NAME=128,512: one plan for several "
                 "sizes, of which ds-run takes the smallest that holds the samples of a step");
  app.add_option("--constant", constants, "NAME=NUMBER: an input that is this number throughout, and no data");
  app.add_option("--trainable", trainable, "train the initializers that match this regular expression, too");
  app.add_option("--frozen", frozen, "do not train those that match");
  app.add_option("--loss", losses,
                 "the output that is the loss, where the graph has several; repeatable as NAME=WEIGHT: their sum");
  app.add_option(
         "--attach-loss", attachLoss,
         "the loss of a graph that ends in logits: KIND or KIND:OUTPUT, which reads an input `labels`, or LOSS.onnx, "
         "which reads outputs of the model by name, and data")
      ->check(CLI::Validator(checkAttached, "KIND[:OUTPUT]|LOSS.onnx"));
  app.add_option("--weights", weights,
                 "safetensors file, index of several or folder, with what the model file leaves out");
  app.add_option("--batch-norm", batchNorm, "as-written|train: what to do about BatchNormalization in inference mode")
      ->check(CLI::IsMember({"refuse", "as-written", "train"}));
  app.add_option("--dropout", dropout, "as-written|force|off: what to do about Dropout that lost its training mode")
      ->check(CLI::IsMember({"refuse", "as-written", "force", "off"}));
}

import::ImportOptions ModelArguments::options() const {
  import::ImportOptions result;
  result.path = path;
  result.dims = Dims(dims).each;
  result.constants = parseConstants(constants);
  result.trainable = trainable;
  result.frozen = frozen;
  result.losses = parseLosses(losses);
  result.attach = attachedFrom(attachLoss);
  result.weights = weights;
  using Dropout = import::ImportOptions::Dropout;
  const std::map<std::string, Dropout> dropouts = {{"refuse", Dropout::Refuse},
                                                   {"as-written", Dropout::AsWritten},
                                                   {"force", Dropout::Force},
                                                   {"off", Dropout::Off}};
  result.dropout = dropouts.at(dropout);
  using BatchNorm = import::ImportOptions::BatchNorm;
  const std::map<std::string, BatchNorm> norms = {
      {"refuse", BatchNorm::Refuse}, {"as-written", BatchNorm::AsWritten}, {"train", BatchNorm::Train}};
  result.batchNorm = norms.at(batchNorm);
  return result;
}

driver::Lengths ModelArguments::lengths() const { return Dims(dims).lengths; }

std::vector<std::string> ModelArguments::flags() const {
  std::vector<std::string> given;
  for (const std::string &dim : dims)
    if (!dim.starts_with("batch=")) // a setting of the configuration
      given.push_back("--dim=" + dim);
  for (const std::string &constant : constants)
    given.push_back("--constant=" + constant);
  for (const std::string &loss : losses)
    given.push_back("--loss=" + loss);
  if (batchNorm != "refuse")
    given.push_back("--batch-norm=" + batchNorm);
  if (dropout != "refuse")
    given.push_back("--dropout=" + dropout);
  return given;
}

void PlanningArguments::add(CLI::App &app) {
  model.add(app);
  app.add_option("--config", config, "DeepSpeed's ds_config.json; ours stands under \"deepstatic\"")->required();
  app.add_option("--machine", machine, "a machine file, or the name of one in models/machines");
  app.add_option("--set", sets, "key.path=value: overrides one configuration key");
  app.add_option("--device-memory", deviceMemory, "of one rank, e.g. 2GiB");
  app.add_option("--host-memory", hostMemory, "of one rank");
  CLI::Option *rank = app.add_option("--lora", lora,
                                     "the rank of adapters beside every weight that activations are multiplied with: "
                                     "they are trained, and all else is "
                                     "frozen but what --trainable names");
  app.add_option("--lora-targets", loraTargets, "which weights, a regular expression over their names")->needs(rank);
  app.add_option("--without", without, "leave out a pass that only makes the plan better, to compare; repeatable");
}

std::vector<NamedPath> PlanningArguments::inputs() const {
  std::vector<NamedPath> files = filesOfModel(model.path);
  files.push_back({"the configuration", config});
  files.push_back({"the machine file", machine});
  files.push_back({"the weights", model.weights});
  if (const std::optional<AttachedLoss> loss = attachedFrom(model.attachLoss))
    files.push_back({"the loss", loss->file});
  return files;
}

driver::CompileRequest PlanningArguments::request() const {
  driver::CompileRequest result;
  result.model = model.options();
  if (lora && *lora < 1)
    throw Error("--lora " + std::to_string(*lora) + " is no rank; give 1 or more, as in --lora 8");
  result.model.loraRank = lora.value_or(0);
  result.model.loraTargets = loraTargets;
  result.lengths = model.lengths();
  result.configPath = config;
  result.overrides.fileName = config;
  result.overrides.sets = sets;
  if (result.model.attach)
    result.overrides.sets.push_back("deepstatic.loss=" + jsonOf(*result.model.attach));
  if (!deviceMemory.empty())
    result.overrides.deviceMemory = config::parseBytes(deviceMemory, "--device-memory");
  if (!hostMemory.empty())
    result.overrides.hostMemory = config::parseBytes(hostMemory, "--host-memory");
  result.machine = machine;
  result.without = without;
  result.flags = model.flags();
  return result;
}

driver::CompileRequest requestOf(const plan::proto::Plan &plan, const sources::Places &places) {
  const plan::proto::Sources &asked = plan.sources();
  ModelArguments model;
  driver::CompileRequest request;
  CLI::App app;
  model.add(app);
  app.add_option("--without", request.without);
  std::vector<std::string> words(asked.flags().rbegin(), asked.flags().rend()); // CLI11 begins at the end
  words.push_back(places.model);
  try {
    app.parse(words);
  } catch (const CLI::Error &error) {
    throw Error("the plan's record of its command line is damaged: " + std::string(error.what()) +
                "; compile it again");
  }
  const std::filesystem::path folder = std::filesystem::path(places.plan).parent_path();
  model.trainable = {asked.trainable().begin(), asked.trainable().end()};
  model.frozen = {asked.frozen().begin(), asked.frozen().end()};
  model.weights = places.weights;
  if (model.weights.empty() && !asked.weights().empty())
    model.weights = (folder / asked.weights()).lexically_normal().string();
  request.model = model.options();
  request.model.loraRank = asked.lora_rank();
  request.model.loraTargets = asked.lora_targets();
  request.model.dims.erase("batch"); // among the overrides
  if (!plan.dimension().empty())
    request.model.dims[plan.dimension()] = int64_t(plan.size());
  if (const std::optional<AttachedLoss> loss = sources::attachedLossOf(plan); loss && !loss->file.empty())
    request.model.attach = AttachedLoss{.file = (folder / loss->file).lexically_normal().string()};
  request.configPath = request.overrides.fileName = places.config;
  request.overrides.sets = {asked.overrides().begin(), asked.overrides().end()};
  for (const plan::proto::Axis &axis : plan.world().axes())
    request.overrides.ranks *= int64_t(axis.size());
  request.overrides.byLayer = plan.pipeline().schedule() == "accumulate-by-layer";
  request.warn = [](const std::string &) {}; // the compile has said it
  return request;
}

} // namespace ds::tool
