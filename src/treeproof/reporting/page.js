(function(){
var root=document.documentElement,button=document.querySelector('button');
if(button)button.addEventListener('click',function(){
var dark=root.dataset.look?root.dataset.look==='dark':matchMedia('(prefers-color-scheme:dark)').matches;
root.dataset.look=dark?'light':'dark'});
document.querySelectorAll('svg[data-curve]').forEach(function(svg){
var c=JSON.parse(svg.dataset.curve),g=svg.querySelector('.cursor'),line=g.querySelector('line'),
out=svg.parentNode.querySelector('.read'),start=out?out.textContent:'';
function pct(v){return (100*v).toFixed(1)+'%'}
function read(e){
var box=svg.getBoundingClientRect(),x=(e.clientX-box.left)*__W__/box.width,
t=Math.min(1,Math.max(0,(x-__L__)/(__W__-__L__-__R__))),eps=t*c.eps[c.eps.length-1],
i=c.eps.findIndex(function(v){return v>eps}),px=__L__+(__W__-__L__-__R__)*t;
i=i<0?c.eps.length-1:i-1;if(c.whole)eps=c.eps[i];
g.removeAttribute('hidden');line.setAttribute('x1',px);line.setAttribute('x2',px);
line.setAttribute('y1',__T__);line.setAttribute('y2',__B__);
if(out)out.textContent='eps '+Number(eps.toPrecision(3))+': '+(c.attack[i]===c.verified[i]?
'error exactly '+pct(c.verified[i]):'error between '+pct(c.attack[i])+' and '+pct(c.verified[i]))}
svg.addEventListener('pointermove',read);svg.addEventListener('pointerdown',read);
svg.addEventListener('pointerleave',function(){g.setAttribute('hidden','hidden');if(out)out.textContent=start});
})})();
