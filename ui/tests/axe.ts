// axe-core over the whole document. Contrast needs a painted page: tests/contrast.test.ts measures it.

import axe from 'axe-core';

/** Finds that shut somebody out: `serious` and `critical`. */
export async function seriousFindings(): Promise<string[]> {
  const { violations } = await axe.run(document, {
    rules: { 'color-contrast': { enabled: false }, 'color-contrast-enhanced': { enabled: false } },
    resultTypes: ['violations'],
  });
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help}\n${nodes.map(({ html }) => `    ${html.slice(0, 200)}`).join('\n')}`);
}
