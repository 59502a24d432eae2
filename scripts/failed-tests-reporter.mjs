// A vitest reporter that appends every failed test to the file that DENDRO_FAILED_TESTS names. Without this variable it does
// nothing. `npm run test:full` prints the file after each step and at the end, because the report of vitest may be thousands of
// lines above.
import { appendFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

const FILE = process.env.DENDRO_FAILED_TESTS;
const MAX_MESSAGE_LENGTH = 1_500;

export default class FailedTestsReporter {
  onTestCaseResult(test) {
    const { state, errors } = test.result();
    if (state === 'failed') append(`${test.module.relativeModuleId} > ${test.fullName}`, errors);
  }

  /** Errors outside of tests, such as in `beforeAll`. */
  onTestSuiteResult(suite) {
    if (suite.errors().length > 0)
      append(`${suite.module.relativeModuleId} > ${suite.fullName}`, suite.errors());
  }

  onTestModuleEnd(module) {
    if (module.errors().length > 0) append(module.relativeModuleId, module.errors());
  }

  onTestRunEnd(_modules, unhandledErrors) {
    if (unhandledErrors.length > 0) append('outside of all tests', unhandledErrors);
  }
}

function append(title, errors) {
  if (!FILE) return;
  const messages = errors.map(({ message, diff, stacks }) => {
    const [frame] = stacks ?? [];
    const place = frame === undefined ? '' : `\nat ${frame.file}:${frame.line}`;
    return `${message}${diff === undefined ? '' : `\n${diff}`}`.slice(0, MAX_MESSAGE_LENGTH) + place;
  });
  const indented = stripVTControlCharacters(messages.join('\n')).replaceAll(/^/gm, '    ');
  appendFileSync(FILE, `FAILED ${title}\n${indented}\n`);
}
