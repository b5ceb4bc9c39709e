"""Times the pages of a running server, fifteen times each: time_pages.py PORT DATA-DIRECTORY"""
import http.client
import re
import sys
import time

port=int(sys.argv[1]); token=open(sys.argv[2] + '/admin.token').read().strip()
c=http.client.HTTPConnection('127.0.0.1',port)
def ask(m,p,b=None,h={}):
    t=time.perf_counter(); c.request(m,p,b,h); r=c.getresponse(); x=r.read(); return r,x.decode(),(time.perf_counter()-t)*1e3
r,x,_=ask('GET','/ui/sign-in'); word=re.search('name="word" value="([^"]+)',x).group(1)
r,x,_=ask('POST','/ui/sign-in',f'word={word}&token={token}',{'content-type':'application/x-www-form-urlencoded'})
k={'cookie':r.getheader('set-cookie').split(';')[0]}
for p in ['/ui','/ui/inbox','/ui/inbox?agent=agent-000','/ui/inbox?agent=agent-000&show=unread','/ui/inbox?agent=agent-000&show=asked','/ui/inbox?agent=agent-000&show=sent','/ui/live','/ui/conversations','/ui/conversations/talk-7','/ui/agents','/ui/agents?look=graph','/ui/agents/agent-000','/ui/search?q=ledger','/ui/search?q=977','/ui/reservations','/ui/settings','/ui/pulse']:
    ts=[]
    for i in range(15):
        r,x,t=ask('GET',p,None,k); assert r.status==200,(p,r.status,x[:300]); ts.append(t)
    ts.sort(); print(f"{p:45} median {ts[7]:7.1f} ms   best {ts[0]:7.1f}   worst {ts[-1]:7.1f}   {len(x)} bytes")
