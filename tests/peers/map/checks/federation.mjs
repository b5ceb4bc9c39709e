// Messages to other systems.
import { check, same, oneOf, failsWith } from '../harness.mjs';

const answersOrFails = async (p, codes, ok) => {
  try {
    ok(await p);
  } catch (e) {
    if (e.code === undefined) throw e;
    oneOf(e.code, codes, 'code');
  }
};

check('fed.hop-limit', async (t) => {
  const g = await t.gateway({ routing: { systemId: 'alpha', maxHops: 0 } });
  await failsWith(g.routeToSystem('beta', { id: 'm', from: 'x', to: { agent: 'y' }, timestamp: 1, payload: 1 }), [5011, 5003]);
});

check('fed.unknown-system', async (t) => {
  const g = await t.gateway();
  await answersOrFails(
    g.routeToSystem('nowhere', { id: 'm', from: 'x', to: { agent: 'y' }, timestamp: 1, payload: 1 }),
    [5000, 5001, 5003],
    (r) => same(r.routed, false, 'routed'),
  );
});
