// Answers one question a line: a call of an exported function, an exported value, or a change of a signal.
import { createInterface } from "node:readline";

const web = new URL("../../../web/js/", import.meta.url);

/** An argument: what JSON has, or {exported: name, of: module, made: [...]}, what a module exports, called with `made` if given. */
async function given(argument) {
  if (typeof argument?.exported !== "string") return argument;
  const found = (await import(new URL(argument.of, web)))[argument.exported];
  return argument.made ? found(...argument.made) : found;
}

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  let answer;
  try {
    const module = await import(new URL(question.module, web));
    if ("call" in question) answer = { returned: await module[question.call](...(await Promise.all(question.arguments.map(given)))) };
    else if ("set" in question) (module[question.set].value = question.to), (answer = {});
    else answer = { returned: module[question.value]?.value ?? module[question.value] };
  } catch (failure) {
    answer = { thrown: String(failure?.stack || failure) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
